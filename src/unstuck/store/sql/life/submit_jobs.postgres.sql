-- Insert-only: takes no lock that another job needs. Answers the ids that were new, and whether a queue cap must be looked at.
-- A job with a target enters by its line, and the inbox tells who can give it its turn.
-- :alone: it is a transaction by itself. Then it stores nothing where `submit_at_once` would not, and answers with nothing.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), door AS MATERIALIZED (
    SELECT CAST(:alone AS INTEGER) = 0
           OR (clock.now BETWEEN CAST(:earliest AS BIGINT) AND CAST(:latest AS BIGINT)
               AND (CAST(:seen AS BIGINT) IS NULL OR (SELECT COALESCE(MAX(seen_at), 0) FROM unstuck_workflows) = CAST(:seen AS BIGINT))
               AND NOT EXISTS (SELECT 1 FROM unstuck_limits WHERE max_queued IS NOT NULL)
               AND (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NULL) AS is_open
      FROM clock
), born AS (
    INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, target, priority, rank, payload, policy, created_at, available_at,
                              expires_at, key, tags, state, event_count, on_hold, after_failure, replay_of, appointed, trace, span,
                              signature, signed_until, made_by)
    SELECT r.uid, r.tenant, r.queue, r.workflow, r.route, r.target, r.priority, clock.now - r.priority * 60000000, r.payload, r.policy,
           clock.now, GREATEST(clock.now, r.start_at + unstuck_ahead(), clock.now + r.delay),
           GREATEST(clock.now, r.start_at + unstuck_ahead(), clock.now + r.delay) + r.expires_after, r.key, r.tags,
           r.state, r.event_count, r.on_hold, r.after_failure, r.replay_of, r.start_at, r.trace, r.span, r.signature, r.signed_until,
           r.made_by
      FROM json_to_recordset(CAST(:rows AS json)) AS r (
               uid TEXT, tenant TEXT, queue TEXT, workflow TEXT, route BIGINT, target BIGINT, priority BIGINT, payload TEXT,
               policy BIGINT, start_at BIGINT, delay BIGINT, expires_after BIGINT, key TEXT, tags TEXT, place BIGINT,
               state TEXT, event_count BIGINT, on_hold SMALLINT, after_failure TEXT, replay_of TEXT, trace TEXT, span TEXT,
               signature TEXT, signed_until BIGINT, made_by TEXT),
           clock
      JOIN door ON door.is_open
     ORDER BY r.place
    ON CONFLICT (uid) DO NOTHING
    RETURNING id, uid, tenant, route, target, priority, rank, created_at, available_at, expires_at, tags,
              state = 'QUEUED' AND available_at <= created_at AS is_due,
              state = 'QUEUED' AND available_at > created_at AS is_later
), queued AS (
    INSERT INTO unstuck_ready (route, rank, job)
    SELECT route, rank, id FROM born WHERE is_due AND target IS NULL
), lined AS (
    INSERT INTO unstuck_line (target, place, job, route)
    SELECT target, -CAST(priority AS BIGINT), id, route FROM born WHERE is_due AND target IS NOT NULL
), noted AS (
    INSERT INTO unstuck_inbox (target)
    SELECT DISTINCT target FROM born WHERE is_due AND target IS NOT NULL
), timed AS (
    INSERT INTO unstuck_timers (kind, due_at, job, route)
    SELECT 'start', available_at, id, route FROM born WHERE is_later
     UNION ALL
    SELECT 'expire', expires_at, id, route FROM born WHERE expires_at IS NOT NULL
), tagged AS (
    INSERT INTO unstuck_tags (tenant, tag, job)
    SELECT DISTINCT born.tenant, tag.value, born.id
      FROM born
     CROSS JOIN LATERAL json_array_elements_text(CAST(born.tags AS json)) AS tag (value)
     WHERE born.tags IS NOT NULL
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token)
    SELECT id, 1, created_at, 'submitted', 1, 0 FROM born
)
SELECT id, uid, created_at, created_at AS now,
       (SELECT COALESCE(MAX(seen_at), 0) FROM unstuck_workflows) AS seen,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE max_queued IS NOT NULL) AS is_capped,
       (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS is_guarded FROM born
