SELECT w.*
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, run BIGINT, key TEXT)
 CROSS JOIN LATERAL (SELECT * FROM unstuck_waits AS w WHERE w.job = r.job AND w.run = r.run AND w.key = r.key LIMIT 1) AS w
