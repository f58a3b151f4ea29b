-- Who sleeps until there is work.

-- name: mark_idle
-- A hint with an end: a listener that was killed stops costing notifications by itself.
INSERT INTO unstuck_idle (listener, until)
VALUES (:listener, unstuck_now() + CAST(:microseconds AS BIGINT))
ON CONFLICT (listener) DO UPDATE SET until = EXCLUDED.until

-- name: forget_idle
DELETE FROM unstuck_idle WHERE listener = :listener

-- name: notify_idle
-- NOTIFY takes a lock over all commits of the cluster: only when somebody listens is it worth that.
SELECT pg_notify('unstuck', CAST(:word AS TEXT))
  FROM (SELECT 1 FROM unstuck_idle WHERE until > unstuck_now() LIMIT 1) AS somebody
