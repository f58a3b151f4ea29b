-- The fast path: attempts that returned and were asked nothing. The fence is in the DELETE itself; what it does not answer
-- was stale, asked something, settled before, is held by somebody else at this moment (SKIP LOCKED: a settle waits for nobody), or runs on a
-- target that is not among the locked :targets, and takes the general path. LATERAL ... LIMIT 1 finds each row by its key
-- whatever the statistics say of this ever-changing table: a join would be planned as if nothing ran, and become quadratic.
-- Between :earliest and :latest: where it is its own transaction, an end written by a clock that has leapt would stand.
-- One row: which places of the arrays were closed, and the targets of those jobs.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), report AS MATERIALIZED (
    SELECT * FROM unnest(CAST(:jobs AS BIGINT[]), CAST(:tokens AS BIGINT[]), CAST(:claims AS TEXT[]), CAST(:results AS TEXT[]), CAST(:durations AS BIGINT[]))
                  WITH ORDINALITY AS r (job, token, claim, result, duration_ms, place)
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
            WHERE (SELECT now FROM clock) BETWEEN CAST(:earliest AS BIGINT) AND CAST(:latest AS BIGINT)))
    RETURNING job, route, run, token, claim, event_count + 1 AS event_count, claimed_at, target
), ending AS MATERIALIZED (
    SELECT closed.*, report.result, report.duration_ms, report.place, (SELECT now FROM clock) AS now
      FROM closed JOIN report ON report.job = closed.job AND report.token = closed.token AND report.claim = closed.claim
), ended AS (
    INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result)
    SELECT job, route, run, 'COMPLETED', token, event_count, :worker, claimed_at, now, duration_ms, result
      FROM ending
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
    SELECT job, event_count, now, 'completed', run, token,
           concat('{"by":', CAST(:by AS TEXT), ',"claim":', to_json(claim), ',"duration_ms":' || duration_ms, '}')
      FROM ending
), news AS (
    INSERT INTO unstuck_inbox (job)
    SELECT closed.job
      FROM closed
     WHERE (SELECT 1 FROM unstuck_dependencies d WHERE d.on_job = closed.job LIMIT 1) = 1
    RETURNING job
)
SELECT ARRAY(SELECT place FROM ending ORDER BY place) AS places, ARRAY(SELECT target FROM ending ORDER BY place) AS targets,
       EXISTS (SELECT 1 FROM news) AS is_news, (SELECT now FROM clock) AS now
