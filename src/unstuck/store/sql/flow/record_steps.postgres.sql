-- The fast path: one statement that is its own transaction. The fence is the lock on the open attempt, taken before anything is
-- inserted. What it does not answer is fenced, is held by somebody else at this moment (SKIP LOCKED: nobody waits here), has losses to
-- be forgiven or too many steps, and takes the general path. LATERAL ... LIMIT 1 finds each row by its key, whatever the statistics say.
WITH step AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS r (
               job BIGINT, token BIGINT, claim TEXT, name TEXT, ordinal BIGINT, duration_ms BIGINT, result TEXT)
), open AS MATERIALIZED (
    SELECT found.*
      FROM (SELECT DISTINCT job, token, claim FROM step) AS asked
     CROSS JOIN LATERAL (
           SELECT a.job, a.token, a.claim, a.run
             FROM unstuck_running AS a
            WHERE a.job = asked.job AND a.token = asked.token AND a.claim = asked.claim
              AND (SELECT j.losses FROM unstuck_jobs j WHERE j.id = a.job) = 0
              AND (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_steps s WHERE s.job = a.job LIMIT :most) AS counted) < :most
            LIMIT 1
              FOR SHARE OF a SKIP LOCKED) AS found
), added AS (
    INSERT INTO unstuck_steps (job, name, ordinal, run, token, at, duration_ms, result)
    SELECT open.job, step.name, step.ordinal, open.run, open.token, unstuck_now(), step.duration_ms, step.result
      FROM step JOIN open ON open.job = step.job AND open.token = step.token AND open.claim = step.claim
     ORDER BY step.job, step.name COLLATE "C", step.ordinal
    ON CONFLICT (job, name, ordinal) DO NOTHING
)
SELECT job, token, claim, unstuck_now() AS now FROM open
