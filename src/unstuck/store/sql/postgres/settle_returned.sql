-- The fast path: attempts that returned and were asked nothing. The fence is in the DELETE itself; what it does not answer
-- was stale, asked something, or settled before, and takes the general path.
WITH closed AS (
    DELETE FROM unstuck_running AS a
     USING json_to_recordset(CAST(:rows AS json)) AS r (
               job BIGINT, token BIGINT, claim TEXT, result TEXT, duration_ms BIGINT, data TEXT)
     WHERE a.job = r.job AND a.token = r.token AND a.claim = r.claim AND a.worker = :worker AND a.request IS NULL
    RETURNING a.job, a.route, a.run, a.token, a.claim, a.n + 1 AS n, a.claimed_at, r.result, r.duration_ms, r.data,
              unstuck_now() AS now
), ended AS (
    INSERT INTO unstuck_done (job, route, run, state, token, n, worker, claimed_at, finished_at, duration_ms, result)
    SELECT job, route, run, 'COMPLETED', token, n, :worker, claimed_at, now, duration_ms, result FROM closed
), told AS (
    INSERT INTO unstuck_events (job, n, at, kind, run, token, data)
    SELECT job, n, now, 'completed', run, token, data FROM closed
)
SELECT job, token, claim FROM closed
