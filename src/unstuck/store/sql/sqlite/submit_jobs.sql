-- SQLite has no writing CTEs: this makes the rows, submit_ready, submit_timers and submit_events the rest.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
)
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy,
                          created_at, available_at, expires_at, key, tags)
SELECT r.value ->> 'uid', r.value ->> 'tenant', r.value ->> 'queue', r.value ->> 'workflow', r.value ->> 'route',
       r.value ->> 'priority', clock.now - (r.value ->> 'priority') * 60000000, r.value ->> 'payload', r.value ->> 'policy',
       clock.now, MAX(clock.now, COALESCE(r.value ->> 'start_at', 0), clock.now + (r.value ->> 'delay')),
       MAX(clock.now, COALESCE(r.value ->> 'start_at', 0), clock.now + (r.value ->> 'delay')) + (r.value ->> 'expires_after'),
       r.value ->> 'key', r.value ->> 'tags'
  FROM clock, json_each(:rows) AS r
 WHERE TRUE
 ORDER BY r.value ->> 'place'
ON CONFLICT (uid) DO NOTHING
RETURNING id, uid
