-- The series: what ended is counted once, in the order of its end, by whoever has the row of unstuck_counted.

-- name: counted
SELECT until, unstuck_now() AS now FROM unstuck_counted

-- name: lock_counted
SELECT until, enqueued_to, unstuck_now() AS now FROM unstuck_counted {lock FOR UPDATE SKIP LOCKED}

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

-- name: sorted_ends
-- A row for each minute, name, end and bucket that there is: all that series and totals add.
-- When a past run was due nobody knows any more: its job's row tells of the run that came after it. Nor how long one waited that was never claimed.
WITH ended AS MATERIALIZED (
    SELECT d.route, d.state, d.finished_at, d.duration_ms, d.claimed_at - j.available_at AS waited, d.error_type
      FROM unstuck_done AS d
      {by_key unstuck_jobs AS j ON j.id = d.job}
     WHERE d.finished_at >= :since AND d.finished_at < :until
    UNION ALL
    SELECT route, state, finished_at, duration_ms, NULL, error_type
      FROM unstuck_past_runs
     WHERE finished_at >= :since AND finished_at < :until
), sorted AS MATERIALIZED (
    SELECT finished_at - finished_at % 60000000 AS minute, route, state, CASE WHEN error_type = :stuck THEN 1 ELSE 0 END AS is_stuck,
           {bucket waited 1000} AS wait, {bucket duration_ms 1} AS run, COUNT(*) AS ends,
           CAST(SUM(CASE WHEN waited > 0 THEN waited ELSE 0 END) AS BIGINT) AS waited, CAST(SUM(duration_ms) AS BIGINT) AS ran
      FROM ended
     GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT r.tenant, r.queue, r.workflow, e.minute, e.state, e.is_stuck, e.wait, e.run, e.ends, e.waited, e.ran
  FROM sorted AS e
  {by_key unstuck_routes AS r ON r.id = e.route}

-- name: add_series
INSERT INTO unstuck_series AS s (step, at, tenant, queue, workflow, {counts series})
SELECT step, at, tenant, queue, workflow, {counts series}
  FROM {rows :rows AS r (step BIGINT, at BIGINT, tenant TEXT, queue TEXT, workflow TEXT, {counts series BIGINT})}
 WHERE TRUE
ON CONFLICT (step, at, tenant, queue, workflow) DO UPDATE SET {counts series + s}

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
           {counts series SUM s}
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
