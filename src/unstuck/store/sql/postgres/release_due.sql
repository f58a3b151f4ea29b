-- (SELECT unstuck_now()) is evaluated once, so the index on due_at can be used.
WITH due AS (
    DELETE FROM unstuck_timers
     WHERE ctid = ANY (ARRAY(
           SELECT ctid
             FROM unstuck_timers
            WHERE kind = 'start' AND due_at <= (SELECT unstuck_now())
            ORDER BY due_at, job
            LIMIT :batch
              FOR UPDATE SKIP LOCKED))
    RETURNING job
)
INSERT INTO unstuck_ready (route, rank, job)
SELECT j.route, j.rank, j.id
  FROM due
  JOIN unstuck_jobs j ON j.id = due.job
