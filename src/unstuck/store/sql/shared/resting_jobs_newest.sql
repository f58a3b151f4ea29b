-- One page by keyset; :states is ',A,B,' or NULL. Only jobs that rest outside the queue are looked at.
SELECT *
  FROM unstuck_job_rows
 WHERE tenant = :tenant AND number < :after
   AND number IN (SELECT id FROM unstuck_jobs WHERE state <> 'QUEUED')
   AND (CAST(:states AS TEXT) IS NULL OR CAST(:states AS TEXT) LIKE '%,' || state || ',%')
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
   AND (CAST(:error_type AS TEXT) IS NULL OR error_type = CAST(:error_type AS TEXT))
 ORDER BY number DESC
 LIMIT :most
