-- Under the fence, which holds until the commit: the attempt does not end before what it published is told.
WITH ours AS MATERIALIZED (
    SELECT job, run, token, worker FROM unstuck_running WHERE job = :job AND token = :token AND claim = :claim FOR KEY SHARE
), about AS (
    INSERT INTO unstuck_news (number, tenant, queue, workflow, target, topic, job, by, key, told_at, expires_at)
    SELECT nextval('unstuck_news_numbers'), j.tenant, j.queue, j.workflow, g.name, CAST(:topic AS TEXT), j.uid, COALESCE(w.name, '?'),
           CAST(:key AS TEXT), clock.now, clock.now + CAST(:ttl AS BIGINT)
      FROM ours
      {by_key unstuck_jobs AS j ON j.id = ours.job}
      {by_key_or_null unstuck_targets AS g ON g.id = j.target}
      {by_key_or_null unstuck_workers AS w ON w.id = ours.worker}
     CROSS JOIN (SELECT unstuck_now() AS now) AS clock
    ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING number, told_at, expires_at
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
    SELECT 0, about.number, about.told_at, CAST(:kind AS TEXT), ours.run, ours.token, CAST(:data AS TEXT) FROM about, ours
)
SELECT number, expires_at FROM about
