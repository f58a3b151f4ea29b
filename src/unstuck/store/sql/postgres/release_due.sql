-- (SELECT unstuck_now()) is evaluated once, so the index on due_at can be used. The head of a target that comes back stands
-- before everybody else; while its timer is here nobody else can become head.
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
), job AS MATERIALIZED (
    SELECT j.id, j.route, j.rank, j.target, j.priority, t.head
      FROM due
      JOIN unstuck_jobs j ON j.id = due.job
      LEFT JOIN unstuck_targets t ON t.id = j.target
), readied AS (
    INSERT INTO unstuck_ready (route, rank, job) SELECT route, rank, id FROM job WHERE target IS NULL
), lined AS (
    INSERT INTO unstuck_line (target, place, job, route)
    SELECT target, CASE WHEN head = id THEN :first ELSE -priority END, id, route FROM job WHERE target IS NOT NULL
), announced AS (
    INSERT INTO unstuck_inbox (target) SELECT DISTINCT target FROM job WHERE target IS NOT NULL
)
SELECT COUNT(*) AS released FROM due
