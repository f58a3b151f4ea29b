SELECT route, COUNT(*) AS jobs
  FROM unstuck_running
 WHERE route IN (SELECT value FROM json_each(:routes))
 GROUP BY route
