-- Jobs that nothing keeps from their queue and that need no more than it: a transaction by itself, in one round trip.
-- All or none: where a cap must be counted, the blacklist asked, a name or a workflow looked up again, or where the clock has leapt,
-- it stores nothing and answers that the door `is_open` no longer. `born`: how many were new; if not all, `uids` says which.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), door AS MATERIALIZED (
    SELECT clock.now BETWEEN CAST(:earliest AS BIGINT) AND CAST(:latest AS BIGINT)
           AND (CAST(:seen AS BIGINT) IS NULL OR (SELECT COALESCE(MAX(seen_at), 0) FROM unstuck_workflows) = CAST(:seen AS BIGINT))
           AND NOT EXISTS (SELECT 1 FROM unstuck_limits WHERE max_queued IS NOT NULL)
           AND (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NULL AS is_open
      FROM clock
), born AS (
    INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at, available_at, trace,
                              signature, signed_until)
    SELECT r.uid, CAST(:tenant AS TEXT), CAST(:queue AS TEXT), CAST(:workflow AS TEXT), r.route, CAST(:priority AS INTEGER),
           clock.now - CAST(:priority AS BIGINT) * 60000000, r.payload, CAST(:policy AS BIGINT), clock.now, clock.now, r.trace,
           r.signature, r.signed_until
      FROM clock
      JOIN door ON door.is_open
     CROSS JOIN unnest(CAST(:uids AS TEXT[]), CAST(:routes AS BIGINT[]), CAST(:payloads AS TEXT[]), CAST(:traces AS TEXT[]),
                       CAST(:signatures AS TEXT[]), CAST(:untils AS BIGINT[]))
                WITH ORDINALITY AS r (uid, route, payload, trace, signature, signed_until, place)
     ORDER BY r.place
    ON CONFLICT (uid) DO NOTHING
    RETURNING id, uid, route, rank, created_at
), queued AS (
    INSERT INTO unstuck_ready (route, rank, job)
    SELECT route, rank, id FROM born
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token)
    SELECT id, 1, created_at, 'submitted', 1, 0 FROM born
), new AS (
    SELECT count(*) AS born FROM born
)
SELECT clock.now, door.is_open, new.born,
       CASE WHEN new.born < CAST(:jobs AS BIGINT) THEN (SELECT CAST(json_agg(uid) AS TEXT) FROM born) END AS uids
  FROM clock, door, new
