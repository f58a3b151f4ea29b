-- How much these children of each job have left behind; the database need not read it to know its length.
SELECT r.parent AS job, SUM(COALESCE({bytes d.result}, 0)) AS bytes
  FROM {rows :rows AS r (parent BIGINT, uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key unstuck_done AS d ON d.job = j.id}
 GROUP BY r.parent
