-- How much these children of each job have left behind; the database need not read it to know its length.
SELECT r.parent AS job, SUM(COALESCE(octet_length(d.result), 0)) AS bytes
  FROM json_to_recordset(CAST(:rows AS json)) AS r (parent BIGINT, uid TEXT)
 CROSS JOIN LATERAL (SELECT id FROM unstuck_jobs WHERE uid = r.uid LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT result FROM unstuck_done WHERE job = j.id LIMIT 1) AS d
 GROUP BY r.parent
