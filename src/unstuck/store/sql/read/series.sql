-- The series: what ended is counted once, in the order of its end, by whoever has the row of unstuck_counted.

-- name: counted
SELECT until, unstuck_now() AS now FROM unstuck_counted

-- name: lock_counted
SELECT until, unstuck_now() AS now FROM unstuck_counted {lock FOR UPDATE SKIP LOCKED}

-- name: next_ends
-- How many there are, up to a batch, and when the last of those ended. A resume moves an end to the past runs.
SELECT COUNT(*) AS ends, MAX(finished_at) AS last
  FROM (SELECT finished_at
          FROM (SELECT * FROM (SELECT finished_at FROM unstuck_done
                                WHERE finished_at >= :since AND finished_at < :until ORDER BY finished_at LIMIT :batch) AS ended
                UNION ALL
                SELECT * FROM (SELECT finished_at FROM unstuck_past_runs
                                WHERE finished_at >= :since AND finished_at < :until ORDER BY finished_at LIMIT :batch) AS past) AS both_kinds
         ORDER BY finished_at
         LIMIT :batch) AS first

-- name: count_ends
-- When a past run was due nobody knows any more: its job's row tells of the run that came after it. Nor how long one waited that was never claimed.
WITH ended AS MATERIALIZED (
    SELECT d.route, d.state, d.finished_at, d.duration_ms, d.claimed_at - j.available_at AS waited
      FROM unstuck_done AS d
      {by_key unstuck_jobs AS j ON j.id = d.job}
     WHERE d.finished_at >= :since AND d.finished_at < :until
    UNION ALL
    SELECT route, state, finished_at, duration_ms, NULL
      FROM unstuck_past_runs
     WHERE finished_at >= :since AND finished_at < :until
), sorted AS MATERIALIZED (
    SELECT finished_at - finished_at % 60000000 AS minute, route, state,
           CASE WHEN waited IS NULL THEN NULL WHEN waited <= 10000 THEN 1 WHEN waited <= 30000 THEN 2
                WHEN waited <= 100000 THEN 3 WHEN waited <= 300000 THEN 4 WHEN waited <= 1000000 THEN 5
                WHEN waited <= 3000000 THEN 6 WHEN waited <= 10000000 THEN 7 WHEN waited <= 30000000 THEN 8
                WHEN waited <= 60000000 THEN 9 WHEN waited <= 300000000 THEN 10 WHEN waited <= 1800000000 THEN 11
                ELSE 12 END AS wait,
           CASE WHEN duration_ms IS NULL THEN NULL WHEN duration_ms <= 10 THEN 1 WHEN duration_ms <= 30 THEN 2
                WHEN duration_ms <= 100 THEN 3 WHEN duration_ms <= 300 THEN 4 WHEN duration_ms <= 1000 THEN 5
                WHEN duration_ms <= 3000 THEN 6 WHEN duration_ms <= 10000 THEN 7 WHEN duration_ms <= 30000 THEN 8
                WHEN duration_ms <= 60000 THEN 9 WHEN duration_ms <= 300000 THEN 10
                WHEN duration_ms <= 1800000 THEN 11 ELSE 12 END AS run,
           COUNT(*) AS ends
      FROM ended
     GROUP BY 1, 2, 3, 4, 5
)
INSERT INTO unstuck_series AS s (step, at, tenant, queue, workflow,
       completed, failed, timeout, cancelled, dead, wait_1, wait_2, wait_3, wait_4, wait_5, wait_6, wait_7, wait_8,
       wait_9, wait_10, wait_11, wait_12, run_1, run_2, run_3, run_4, run_5, run_6, run_7, run_8, run_9, run_10,
       run_11, run_12)
SELECT w.step, sorted.minute - sorted.minute % (w.step * 1000000), r.tenant, r.queue, r.workflow,
       COALESCE(SUM(ends) FILTER (WHERE state = 'COMPLETED'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'FAILED'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'TIMEOUT'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'CANCELLED'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'DEAD'), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 1), 0),
       COALESCE(SUM(ends) FILTER (WHERE wait = 2), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 3), 0),
       COALESCE(SUM(ends) FILTER (WHERE wait = 4), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 5), 0),
       COALESCE(SUM(ends) FILTER (WHERE wait = 6), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 7), 0),
       COALESCE(SUM(ends) FILTER (WHERE wait = 8), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 9), 0),
       COALESCE(SUM(ends) FILTER (WHERE wait = 10), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 11), 0),
       COALESCE(SUM(ends) FILTER (WHERE wait = 12), 0), COALESCE(SUM(ends) FILTER (WHERE run = 1), 0),
       COALESCE(SUM(ends) FILTER (WHERE run = 2), 0), COALESCE(SUM(ends) FILTER (WHERE run = 3), 0),
       COALESCE(SUM(ends) FILTER (WHERE run = 4), 0), COALESCE(SUM(ends) FILTER (WHERE run = 5), 0),
       COALESCE(SUM(ends) FILTER (WHERE run = 6), 0), COALESCE(SUM(ends) FILTER (WHERE run = 7), 0),
       COALESCE(SUM(ends) FILTER (WHERE run = 8), 0), COALESCE(SUM(ends) FILTER (WHERE run = 9), 0),
       COALESCE(SUM(ends) FILTER (WHERE run = 10), 0), COALESCE(SUM(ends) FILTER (WHERE run = 11), 0),
       COALESCE(SUM(ends) FILTER (WHERE run = 12), 0)
  FROM sorted
 CROSS JOIN (SELECT CAST(60 AS BIGINT) AS step UNION ALL SELECT 3600) AS w
  {by_key unstuck_routes AS r ON r.id = sorted.route}
 WHERE TRUE
 GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (step, at, tenant, queue, workflow) DO UPDATE
   SET completed = s.completed + excluded.completed, failed = s.failed + excluded.failed,
       timeout = s.timeout + excluded.timeout, cancelled = s.cancelled + excluded.cancelled,
       dead = s.dead + excluded.dead, wait_1 = s.wait_1 + excluded.wait_1, wait_2 = s.wait_2 + excluded.wait_2,
       wait_3 = s.wait_3 + excluded.wait_3, wait_4 = s.wait_4 + excluded.wait_4, wait_5 = s.wait_5 + excluded.wait_5,
       wait_6 = s.wait_6 + excluded.wait_6, wait_7 = s.wait_7 + excluded.wait_7, wait_8 = s.wait_8 + excluded.wait_8,
       wait_9 = s.wait_9 + excluded.wait_9, wait_10 = s.wait_10 + excluded.wait_10,
       wait_11 = s.wait_11 + excluded.wait_11, wait_12 = s.wait_12 + excluded.wait_12,
       run_1 = s.run_1 + excluded.run_1, run_2 = s.run_2 + excluded.run_2, run_3 = s.run_3 + excluded.run_3,
       run_4 = s.run_4 + excluded.run_4, run_5 = s.run_5 + excluded.run_5, run_6 = s.run_6 + excluded.run_6,
       run_7 = s.run_7 + excluded.run_7, run_8 = s.run_8 + excluded.run_8, run_9 = s.run_9 + excluded.run_9,
       run_10 = s.run_10 + excluded.run_10, run_11 = s.run_11 + excluded.run_11, run_12 = s.run_12 + excluded.run_12

-- name: move_counted
UPDATE unstuck_counted SET until = :until

-- name: forget_series
DELETE FROM unstuck_series
 WHERE {postgres ctid = ANY (ARRAY(}{sqlite (step, at, tenant, queue, workflow) IN (}
       SELECT {postgres ctid}{sqlite step, at, tenant, queue, workflow}
         FROM unstuck_series
        WHERE step IN (60, 3600) AND at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT)
        LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}){postgres )}

-- name: series
-- Of one tenant by its index; of all by time. From the minutes, or from the hours that are kept as well. `name`: of the queue or workflow; '' of all together. The busiest of them.
WITH asked AS (
    SELECT * FROM unstuck_series WHERE tenant = CAST(:tenant AS TEXT) AND step = :kept AND at >= :since AND at < :until
    UNION ALL
    SELECT * FROM unstuck_series WHERE CAST(:tenant AS TEXT) IS NULL AND step = :kept AND at >= :since AND at < :until
), summed AS MATERIALIZED (
    SELECT s.at - s.at % CAST(:step AS BIGINT) AS at,
           CASE CAST(:per AS TEXT) WHEN 'queue' THEN s.queue WHEN 'workflow' THEN s.workflow ELSE '' END AS name,
           SUM(s.completed) AS completed, SUM(s.failed) AS failed, SUM(s.timeout) AS timeout,
           SUM(s.cancelled) AS cancelled, SUM(s.dead) AS dead, SUM(s.wait_1) AS wait_1, SUM(s.wait_2) AS wait_2,
           SUM(s.wait_3) AS wait_3, SUM(s.wait_4) AS wait_4, SUM(s.wait_5) AS wait_5, SUM(s.wait_6) AS wait_6,
           SUM(s.wait_7) AS wait_7, SUM(s.wait_8) AS wait_8, SUM(s.wait_9) AS wait_9, SUM(s.wait_10) AS wait_10,
           SUM(s.wait_11) AS wait_11, SUM(s.wait_12) AS wait_12, SUM(s.run_1) AS run_1, SUM(s.run_2) AS run_2,
           SUM(s.run_3) AS run_3, SUM(s.run_4) AS run_4, SUM(s.run_5) AS run_5, SUM(s.run_6) AS run_6,
           SUM(s.run_7) AS run_7, SUM(s.run_8) AS run_8, SUM(s.run_9) AS run_9, SUM(s.run_10) AS run_10,
           SUM(s.run_11) AS run_11, SUM(s.run_12) AS run_12
      FROM asked AS s
     WHERE (CAST(:queue AS TEXT) IS NULL OR s.queue = :queue) AND (CAST(:workflow AS TEXT) IS NULL OR s.workflow = :workflow)
     GROUP BY 1, 2
), busiest AS (
    SELECT name FROM summed GROUP BY name ORDER BY SUM(completed + failed + timeout + cancelled + dead) DESC, {binary name} LIMIT :most
)
SELECT summed.*
  FROM summed
 WHERE name IN (SELECT name FROM busiest)
 ORDER BY {binary name}, at
