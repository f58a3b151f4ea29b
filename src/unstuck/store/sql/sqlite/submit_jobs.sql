-- SQLite has no writing CTEs: this makes the rows, the other submit_ statements the rest.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
)
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, target, priority, rank, payload, policy, created_at, available_at,
                          expires_at, key, tags, state, n, on_hold, after_failure, replay_of, appointed)
SELECT r.value ->> 'uid', r.value ->> 'tenant', r.value ->> 'queue', r.value ->> 'workflow', r.value ->> 'route',
       r.value ->> 'target', r.value ->> 'priority', clock.now - (r.value ->> 'priority') * 60000000,
       r.value ->> 'payload', r.value ->> 'policy',
       clock.now, MAX(clock.now, COALESCE((r.value ->> 'start_at') + unstuck_ahead(), 0), clock.now + (r.value ->> 'delay')),
       MAX(clock.now, COALESCE((r.value ->> 'start_at') + unstuck_ahead(), 0), clock.now + (r.value ->> 'delay')) + (r.value ->> 'expires_after'),
       r.value ->> 'key', r.value ->> 'tags', r.value ->> 'state', r.value ->> 'n', r.value ->> 'on_hold', r.value ->> 'after_failure',
       r.value ->> 'replay_of', r.value ->> 'start_at'
  FROM clock, json_each(:rows) AS r
 WHERE TRUE
 ORDER BY r.value ->> 'place'
ON CONFLICT (uid) DO NOTHING
RETURNING id, uid, created_at, (SELECT COALESCE(MAX(seen_at), 0) FROM unstuck_workflows) AS seen,
          EXISTS (SELECT 1 FROM unstuck_limits WHERE max_queued IS NOT NULL) AS is_capped,
          (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS is_guarded
