-- octet_length is younger than the SQLite of many machines.
-- As journal_steps: of this run those that are answered.
SELECT p.*
  FROM (SELECT w.*, COALESCE(length(CAST(w.payload AS BLOB)), 0) AS bytes, SUM(COALESCE(length(CAST(w.payload AS BLOB)), 0)) OVER (ORDER BY w.key) AS upto
          FROM (SELECT o.*, j.uid, j.workflow
                  FROM unstuck_waits o
                  JOIN unstuck_jobs j ON j.id = o.job
                 WHERE o.job = :job AND o.run = :run AND o.answer IS NOT NULL
                 ORDER BY o.key
                 LIMIT :most OFFSET :skip) AS w) AS p
 WHERE p.upto - p.bytes < :room
 ORDER BY p.key
