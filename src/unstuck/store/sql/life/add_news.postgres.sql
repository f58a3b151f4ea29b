-- A row and its event each, in their order; what is about a job says whose it is.
WITH told AS MATERIALIZED (
    SELECT nextval('unstuck_news_numbers') AS number, COALESCE(r.tenant, j.tenant) AS tenant, COALESCE(r.queue, j.queue) AS queue,
           COALESCE(r.workflow, j.workflow) AS workflow, COALESCE(r.target, g.name) AS target, r.worker, j.uid, r.kind, r.run, r.token, r.data
      FROM {rows :rows AS r (tenant TEXT, queue TEXT, workflow TEXT, target TEXT, worker TEXT, job BIGINT, kind TEXT, run BIGINT, token BIGINT, data TEXT)}
      {by_key_or_null unstuck_jobs AS j ON j.id = r.job}
      {by_key_or_null unstuck_targets AS g ON g.id = j.target}
), clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), about AS (
    INSERT INTO unstuck_news (number, tenant, queue, workflow, target, worker, job, told_at)
    SELECT number, tenant, queue, workflow, target, worker, uid, clock.now FROM told, clock
)
INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT 0, number, clock.now, kind, run, token, data FROM told, clock ORDER BY number
