-- The head of a target that comes back stands before everybody else; while its timer is here nobody else can become head. LATERAL ... LIMIT 1 as in
-- settle_returned; a timer that somebody holds stays.
WITH due AS (
    DELETE FROM unstuck_timers
     WHERE ctid = ANY (ARRAY(
           SELECT found.ctid
             FROM json_to_recordset(CAST(:rows AS json)) AS r (due_at BIGINT, job BIGINT)
            CROSS JOIN LATERAL (
                  SELECT t.ctid
                    FROM unstuck_timers t
                   WHERE t.kind = 'start' AND t.due_at = r.due_at AND t.job = r.job
                   LIMIT 1
                     FOR UPDATE SKIP LOCKED) AS found))
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
SELECT job FROM due
