-- NOTIFY takes a lock over all commits of the cluster: only when somebody listens is it worth that.
SELECT pg_notify('unstuck', '')
  FROM (SELECT 1 FROM unstuck_idle WHERE until > unstuck_now() LIMIT 1) AS somebody
