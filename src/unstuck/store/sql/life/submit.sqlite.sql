-- SQLite has no writing CTEs: a submit is a statement per table.

-- name: submit_jobs
-- SQLite has no writing CTEs: this makes the rows, the other submit_ statements the rest.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
)
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, target, priority, rank, payload, policy, created_at, available_at,
                          expires_at, key, tags, state, event_count, on_hold, after_failure, replay_of, appointed, trace, span,
                          signature, signed_until, made_by)
SELECT r.value ->> 'uid', r.value ->> 'tenant', r.value ->> 'queue', r.value ->> 'workflow', r.value ->> 'route',
       r.value ->> 'target', r.value ->> 'priority', clock.now - (r.value ->> 'priority') * 60000000,
       r.value ->> 'payload', r.value ->> 'policy',
       clock.now, MAX(clock.now, COALESCE((r.value ->> 'start_at') + unstuck_ahead(), 0), clock.now + (r.value ->> 'delay')),
       MAX(clock.now, COALESCE((r.value ->> 'start_at') + unstuck_ahead(), 0), clock.now + (r.value ->> 'delay')) + (r.value ->> 'expires_after'),
       r.value ->> 'key', r.value ->> 'tags', r.value ->> 'state', r.value ->> 'event_count', r.value ->> 'on_hold', r.value ->> 'after_failure',
       r.value ->> 'replay_of', r.value ->> 'start_at', r.value ->> 'trace', r.value ->> 'span',
       r.value ->> 'signature', r.value ->> 'signed_until', r.value ->> 'made_by'
  FROM clock, json_each(:rows) AS r
 WHERE TRUE
 ORDER BY r.value ->> 'place'
ON CONFLICT (uid) DO NOTHING
RETURNING id, uid, created_at, (SELECT COALESCE(MAX(seen_at), 0) FROM unstuck_workflows) AS seen,
          EXISTS (SELECT 1 FROM unstuck_limits WHERE max_queued IS NOT NULL) AS is_capped,
          (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS is_guarded

-- name: submit_door
-- What a submit of jobs that need nothing but their queue must know first.
SELECT unstuck_now() AS now, (SELECT COALESCE(MAX(seen_at), 0) FROM unstuck_workflows) AS seen,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE max_queued IS NOT NULL)
       OR (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS is_watched,
       (SELECT seq FROM sqlite_sequence WHERE name = 'unstuck_jobs') AS last

-- name: submit_plain
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at, available_at, trace, signature,
                          signed_until)
VALUES (:uid, :tenant, :queue, :workflow, :route, :priority, :now - :priority * 60000000, :payload, :policy, :now, :now, :trace, :signature,
        :until)
ON CONFLICT (uid) DO NOTHING

-- name: queue_plain
-- Those with numbers above :last were all made by this transaction.
INSERT INTO unstuck_ready (route, rank, job)
SELECT route, rank, id FROM unstuck_jobs WHERE id > :last

-- name: tell_plain
INSERT INTO unstuck_events (job, number, at, kind, run, token)
SELECT id, 1, created_at, 'submitted', 1, 0 FROM unstuck_jobs WHERE id > :last

-- name: submit_events
INSERT INTO unstuck_events (job, number, at, kind, run, token)
SELECT j.id, 1, j.created_at, 'submitted', 1, 0
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value

-- name: submit_inbox
INSERT INTO unstuck_inbox (target)
SELECT DISTINCT j.target
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at <= j.created_at AND j.target IS NOT NULL

-- name: submit_line
INSERT INTO unstuck_line (target, place, job, route)
SELECT j.target, -j.priority, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at <= j.created_at AND j.target IS NOT NULL

-- name: submit_ready
INSERT INTO unstuck_ready (route, rank, job)
SELECT j.route, j.rank, j.id
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at <= j.created_at AND j.target IS NULL

-- name: submit_tags
INSERT INTO unstuck_tags (tenant, tag, job)
SELECT DISTINCT j.tenant, tag.value, j.id
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  CROSS JOIN json_each(j.tags) AS tag
 WHERE j.tags IS NOT NULL

-- name: submit_timers
INSERT INTO unstuck_timers (kind, due_at, job, route)
SELECT 'start', j.available_at, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.state = 'QUEUED' AND j.available_at > j.created_at
 UNION ALL
SELECT 'expire', j.expires_at, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
 WHERE j.expires_at IS NOT NULL
