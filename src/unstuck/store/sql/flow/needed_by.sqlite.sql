-- Of what :jobs wait for, directly or through others, and has not ended (they themselves too): who must run on one of these
-- :targets, or is one of those :above. UNION: each once, so a circle ends too. For one waiter at a time: nothing travels here.
-- needed.number IS NOT NULL, as it always is: a condition on d alone makes SQLite build a Bloom filter of all dependencies.
WITH RECURSIVE one AS (
    SELECT value ->> 'waiter' AS waiter, value -> 'jobs' AS jobs, value -> 'targets' AS targets, value -> 'above' AS above
      FROM json_each(:rows)
), needed (number) AS (
    SELECT r.value FROM one, json_each(one.jobs) AS r
     UNION
    SELECT d.on_job
      FROM needed
      CROSS JOIN unstuck_dependencies d ON d.job = needed.number
     WHERE NOT EXISTS (SELECT 1 FROM unstuck_done e WHERE e.job = d.on_job AND needed.number IS NOT NULL)
)
SELECT (SELECT waiter FROM one) AS waiter, j.id AS number, j.uid, j.target, t.name AS target_name
  FROM (SELECT number FROM needed LIMIT :most) AS found
  CROSS JOIN unstuck_jobs j ON j.id = found.number
  LEFT JOIN unstuck_targets t ON t.id = j.target
 WHERE j.target IN (SELECT value FROM one, json_each(one.targets)) OR j.id IN (SELECT value FROM one, json_each(one.above))
