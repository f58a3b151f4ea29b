-- The totals: what `count_ends` counts, ever since, for counters that never fall.

-- name: add_totals
-- Of the same runs as count_ends, sorted by the same bounds, in the same transaction. Four rows for each name: of its tenant and of all tenants, by itself and with all others.
WITH ended AS MATERIALIZED (
    SELECT d.route, d.state, d.duration_ms, d.claimed_at - j.available_at AS waited,
           CASE WHEN d.error_type = :stuck THEN 1 ELSE 0 END AS is_stuck
      FROM unstuck_done AS d
      {by_key unstuck_jobs AS j ON j.id = d.job}
     WHERE d.finished_at >= :since AND d.finished_at < :until
    UNION ALL
    SELECT route, state, duration_ms, NULL, CASE WHEN error_type = :stuck THEN 1 ELSE 0 END
      FROM unstuck_past_runs
     WHERE finished_at >= :since AND finished_at < :until
), sorted AS MATERIALIZED (
    SELECT route, state, is_stuck,
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
           COUNT(*) AS ends, SUM(CASE WHEN waited > 0 THEN waited ELSE 0 END) AS waited, SUM(duration_ms) AS ran
      FROM ended
     GROUP BY 1, 2, 3, 4, 5
)
INSERT INTO unstuck_totals AS t (tenant, queue, workflow, moved_at,
       completed, failed, timeout, cancelled, dead, stuck, waited, ran, wait_1, wait_2, wait_3, wait_4, wait_5,
       wait_6, wait_7, wait_8, wait_9, wait_10, wait_11, wait_12, run_1, run_2, run_3, run_4, run_5, run_6, run_7,
       run_8, run_9, run_10, run_11, run_12)
SELECT CASE WHEN kind.of_all = 1 THEN '' ELSE r.tenant END, CASE WHEN kind.together = 1 THEN '' ELSE r.queue END,
       CASE WHEN kind.together = 1 THEN '' ELSE r.workflow END, (SELECT unstuck_now()),
       COALESCE(SUM(ends) FILTER (WHERE state = 'COMPLETED'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'FAILED'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'TIMEOUT'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'CANCELLED'), 0),
       COALESCE(SUM(ends) FILTER (WHERE state = 'DEAD'), 0), COALESCE(SUM(ends) FILTER (WHERE is_stuck = 1), 0),
       COALESCE(SUM(waited), 0), COALESCE(SUM(ran), 0), COALESCE(SUM(ends) FILTER (WHERE wait = 1), 0),
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
 CROSS JOIN (SELECT 0 AS of_all, 0 AS together UNION ALL SELECT 0, 1 UNION ALL SELECT 1, 0 UNION ALL SELECT 1, 1) AS kind
  {by_key unstuck_routes AS r ON r.id = sorted.route}
 WHERE TRUE
 GROUP BY 1, 2, 3
ON CONFLICT (tenant, queue, workflow) DO UPDATE
   SET moved_at = excluded.moved_at, completed = t.completed + excluded.completed,
       failed = t.failed + excluded.failed, timeout = t.timeout + excluded.timeout,
       cancelled = t.cancelled + excluded.cancelled, dead = t.dead + excluded.dead, stuck = t.stuck + excluded.stuck,
       waited = t.waited + excluded.waited, ran = t.ran + excluded.ran, wait_1 = t.wait_1 + excluded.wait_1,
       wait_2 = t.wait_2 + excluded.wait_2, wait_3 = t.wait_3 + excluded.wait_3, wait_4 = t.wait_4 + excluded.wait_4,
       wait_5 = t.wait_5 + excluded.wait_5, wait_6 = t.wait_6 + excluded.wait_6, wait_7 = t.wait_7 + excluded.wait_7,
       wait_8 = t.wait_8 + excluded.wait_8, wait_9 = t.wait_9 + excluded.wait_9,
       wait_10 = t.wait_10 + excluded.wait_10, wait_11 = t.wait_11 + excluded.wait_11,
       wait_12 = t.wait_12 + excluded.wait_12, run_1 = t.run_1 + excluded.run_1, run_2 = t.run_2 + excluded.run_2,
       run_3 = t.run_3 + excluded.run_3, run_4 = t.run_4 + excluded.run_4, run_5 = t.run_5 + excluded.run_5,
       run_6 = t.run_6 + excluded.run_6, run_7 = t.run_7 + excluded.run_7, run_8 = t.run_8 + excluded.run_8,
       run_9 = t.run_9 + excluded.run_9, run_10 = t.run_10 + excluded.run_10, run_11 = t.run_11 + excluded.run_11,
       run_12 = t.run_12 + excluded.run_12

-- name: totals
-- Of one tenant ('': of all together): of all names together, and the largest by themselves.
SELECT * FROM unstuck_totals WHERE tenant = :tenant AND queue = '' AND workflow = ''
 UNION ALL
SELECT *
  FROM (SELECT *
          FROM unstuck_totals
         WHERE tenant = :tenant AND queue <> ''
         ORDER BY completed + failed + timeout + cancelled + dead DESC, {binary queue}, {binary workflow}
         LIMIT :most) AS largest

-- name: forget_totals
DELETE FROM unstuck_totals
 WHERE {postgres ctid = ANY (ARRAY(}{sqlite (tenant, queue, workflow) IN (}
       SELECT {postgres ctid}{sqlite tenant, queue, workflow}
         FROM unstuck_totals
        WHERE moved_at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) AND NOT (tenant = '' AND queue = '')
        ORDER BY moved_at
        LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}){postgres )}
