-- Under the fence. Without its event.
INSERT INTO unstuck_news (tenant, queue, workflow, target, topic, job, by, key, told_at, expires_at)
SELECT j.tenant, j.queue, j.workflow, (SELECT g.name FROM unstuck_targets g WHERE g.id = j.target), :topic, j.uid,
       COALESCE((SELECT w.name FROM unstuck_workers w WHERE w.id = a.worker), '?'), :key, clock.now, clock.now + :ttl
  FROM unstuck_running a
  JOIN unstuck_jobs j ON j.id = a.job
  JOIN (SELECT unstuck_now() AS now) AS clock
 WHERE a.job = :job AND a.token = :token AND a.claim = :claim
ON CONFLICT DO NOTHING
RETURNING number, told_at, expires_at, (SELECT a.run FROM unstuck_running a WHERE a.job = :job) AS run, :token AS token
