-- The jobs that have been due longest, of the first :each on each of these routes, in the queue and in lines. LATERAL as in counts.
WITH early AS MATERIALIZED (
    SELECT mine.route, first.job
      FROM unnest(CAST(:routes AS BIGINT[])) AS mine (route)
     CROSS JOIN LATERAL (SELECT r.job FROM unstuck_ready r WHERE r.route = mine.route ORDER BY r.rank, r.job LIMIT :each) AS first
     UNION ALL
    SELECT mine.route, first.job
      FROM unnest(CAST(:routes AS BIGINT[])) AS mine (route)
     CROSS JOIN LATERAL (SELECT l.job FROM unstuck_line l WHERE l.route = mine.route ORDER BY l.job LIMIT :each) AS first
)
SELECT early.route, j.uid, j.tenant, j.queue, j.workflow, j.available_at, 0 AS is_paused
  FROM early
  {by_key unstuck_jobs AS j ON j.id = early.job}
 WHERE j.available_at <= (SELECT unstuck_now())
 ORDER BY j.available_at, j.id
 LIMIT :most
