-- Insert-only: takes no lock that another job needs. Answers the ids that were new.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), born AS (
    INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy,
                              created_at, available_at, expires_at, key, tags)
    SELECT r.uid, r.tenant, r.queue, r.workflow, r.route, r.priority, clock.now - r.priority * 60000000, r.payload, r.policy,
           clock.now, GREATEST(clock.now, r.start_at, clock.now + r.delay),
           GREATEST(clock.now, r.start_at, clock.now + r.delay) + r.expires_after, r.key, r.tags
      FROM json_to_recordset(CAST(:rows AS json)) AS r (
               uid TEXT, tenant TEXT, queue TEXT, workflow TEXT, route BIGINT, priority BIGINT, payload TEXT, policy BIGINT,
               start_at BIGINT, delay BIGINT, expires_after BIGINT, key TEXT, tags TEXT, place BIGINT),
           clock
     ORDER BY r.place
    ON CONFLICT (uid) DO NOTHING
    RETURNING id, uid, route, rank, created_at, available_at, expires_at
), queued AS (
    INSERT INTO unstuck_ready (route, rank, job)
    SELECT route, rank, id FROM born WHERE available_at <= created_at
), timed AS (
    INSERT INTO unstuck_timers (kind, due_at, job)
    SELECT 'start', available_at, id FROM born WHERE available_at > created_at
     UNION ALL
    SELECT 'expire', expires_at, id FROM born WHERE expires_at IS NOT NULL
), told AS (
    INSERT INTO unstuck_events (job, n, at, kind, run, token)
    SELECT id, 1, created_at, 'submitted', 1, 0 FROM born
)
SELECT id, uid FROM born
