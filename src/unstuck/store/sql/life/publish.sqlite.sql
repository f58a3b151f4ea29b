-- By a key: what is told already is not told again. Without its event.
INSERT INTO unstuck_news (tenant, queue, workflow, target, topic, job, by, key, told_at, expires_at)
SELECT :tenant, j.queue, j.workflow, (SELECT g.name FROM unstuck_targets g WHERE g.id = j.target), :topic, j.uid, :by, :key, clock.now, clock.now + :ttl
  FROM (SELECT unstuck_now() AS now, :job AS job) AS clock
  LEFT JOIN unstuck_jobs j ON j.id = clock.job
 WHERE TRUE
ON CONFLICT DO NOTHING
RETURNING number, told_at, expires_at, 0 AS run, 0 AS token
