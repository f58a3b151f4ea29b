SELECT DISTINCT a.target AS id
  FROM json_each(:workers) AS r
  CROSS JOIN unstuck_running a ON a.worker = r.value
 WHERE a.target IS NOT NULL
