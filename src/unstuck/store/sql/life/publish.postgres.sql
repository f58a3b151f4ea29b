-- By a key: what is told already is not told again.
WITH about AS (
    INSERT INTO unstuck_news (number, tenant, queue, workflow, target, topic, job, by, key, told_at, expires_at)
    SELECT nextval('unstuck_news_numbers'), CAST(:tenant AS TEXT), j.queue, j.workflow, g.name, CAST(:topic AS TEXT), j.uid, CAST(:by AS TEXT),
           CAST(:key AS TEXT), clock.now, clock.now + CAST(:ttl AS BIGINT)
      FROM (SELECT unstuck_now() AS now) AS clock
      {by_key_or_null unstuck_jobs AS j ON j.id = CAST(:job AS BIGINT)}
      {by_key_or_null unstuck_targets AS g ON g.id = j.target}
    ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING number, told_at, expires_at
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
    SELECT 0, number, told_at, CAST(:kind AS TEXT), 0, 0, CAST(:data AS TEXT) FROM about
)
SELECT number, expires_at FROM about
