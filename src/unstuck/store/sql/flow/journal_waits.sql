-- As journal_steps: of this run those that are answered. The job is joined last, not once for every row that is passed over.
SELECT p.*, j.uid, j.workflow
  FROM (SELECT w.*, COALESCE({bytes w.payload}, 0) AS bytes, SUM(COALESCE({bytes w.payload}, 0)) OVER (ORDER BY w.key) AS upto
          FROM (SELECT *
                  FROM unstuck_waits
                 WHERE job = :job AND run = :run AND answer IS NOT NULL
                 ORDER BY key
                 LIMIT :most OFFSET :skip) AS w) AS p
  JOIN unstuck_jobs j ON j.id = p.job
 WHERE p.upto - p.bytes < :room
 ORDER BY p.key
