-- The fast path: attempts that returned and were asked nothing. The fence is in the DELETE itself; what it does not answer
-- was stale, asked something, settled before, is held by somebody else at this moment (SKIP LOCKED: a settle waits for nobody), or runs on a
-- target that is not among the locked :targets, and takes the general path. LATERAL ... LIMIT 1 finds each row by its key
-- whatever the statistics say of this ever-changing table: a join would be planned as if nothing ran, and become quadratic.
-- Between :earliest and :latest: where it is its own transaction, an end written by a clock that has leapt would stand.
WITH report AS MATERIALIZED (
    SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS r (
               job BIGINT, token BIGINT, claim TEXT, result TEXT, duration_ms BIGINT, data TEXT)
), closed AS (
    DELETE FROM unstuck_running
     WHERE ctid = ANY (ARRAY(
           SELECT found.ctid
             FROM report
            CROSS JOIN LATERAL (
                  SELECT a.ctid
                    FROM unstuck_running AS a
                   WHERE a.job = report.job AND a.token = report.token AND a.claim = report.claim
                     AND a.worker + 0 = :worker AND a.request IS NULL AND a.awaited = 0
                     AND (a.target IS NULL OR a.target = ANY (CAST(:targets AS BIGINT[])))
                   LIMIT 1
                     FOR UPDATE SKIP LOCKED) AS found
            WHERE (SELECT unstuck_now()) BETWEEN CAST(:earliest AS BIGINT) AND CAST(:latest AS BIGINT)))
    RETURNING job, route, run, token, claim, event_count + 1 AS event_count, claimed_at, target, unstuck_now() AS now
), ended AS (
    INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result)
    SELECT closed.job, route, run, 'COMPLETED', closed.token, event_count, :worker, claimed_at, now, report.duration_ms, report.result
      FROM closed JOIN report ON report.job = closed.job AND report.token = closed.token AND report.claim = closed.claim
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
    SELECT closed.job, event_count, now, 'completed', run, closed.token, report.data
      FROM closed JOIN report ON report.job = closed.job AND report.token = closed.token AND report.claim = closed.claim
), news AS (
    INSERT INTO unstuck_inbox (job)
    SELECT closed.job
      FROM closed
     WHERE (SELECT 1 FROM unstuck_dependencies d WHERE d.on_job = closed.job LIMIT 1) = 1
    RETURNING job
)
SELECT job, token, claim, target, (SELECT COUNT(*) FROM news) AS news, now FROM closed
