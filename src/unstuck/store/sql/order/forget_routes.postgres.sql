-- Those that a job still names are looked at again after as long; the others go. Their numbers are never used again.
-- ANY (ARRAY(...)): by the key, whatever the statistics say; likewise the first job at or above: an equality would be looked for
-- among all jobs, in the belief that one comes soon.
WITH old AS MATERIALIZED (
    SELECT o.id,
           (COALESCE((SELECT j.route FROM unstuck_jobs j WHERE j.route >= o.id ORDER BY j.route LIMIT 1), -1) = o.id) AS is_named
      FROM unstuck_routes o
     WHERE o.named_at < :before
     ORDER BY o.named_at, o.id
     LIMIT :batch OFFSET :past
       FOR UPDATE SKIP LOCKED
), kept AS (
    UPDATE unstuck_routes SET named_at = unstuck_now() WHERE id = ANY (ARRAY(SELECT id FROM old WHERE is_named))
), gone AS (
    DELETE FROM unstuck_routes WHERE id = ANY (ARRAY(SELECT id FROM old WHERE NOT is_named))
)
SELECT COUNT(*) AS looked FROM old
