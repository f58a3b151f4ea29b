-- How much these children of each job have left behind.
SELECT r.value ->> 'parent' AS job, SUM(COALESCE(length(CAST(d.result AS BLOB)), 0)) AS bytes
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_jobs j ON j.uid = r.value ->> 'uid'
  CROSS JOIN unstuck_done d ON d.job = j.id
 GROUP BY 1
