-- The totals: what the series count, ever since, for counters that never fall.

-- name: add_totals
-- Of the same runs as add_series, in the same transaction.
INSERT INTO unstuck_totals AS t (tenant, queue, workflow, moved_at, {counts totals})
SELECT tenant, queue, workflow, (SELECT unstuck_now()), {counts totals}
  FROM {rows :rows AS r (tenant TEXT, queue TEXT, workflow TEXT, {counts totals BIGINT})}
 WHERE TRUE
ON CONFLICT (tenant, queue, workflow) DO UPDATE SET moved_at = excluded.moved_at, {counts totals + t}

-- name: are_enqueued
-- Whether the next job that was not counted is old enough.
SELECT (SELECT created_at FROM unstuck_jobs WHERE id > c.enqueued_to ORDER BY id LIMIT 1) <= unstuck_now() - :settled AS are_some FROM unstuck_counted AS c

-- name: enqueued
-- The next jobs in the order of their numbers, as many as are old enough: a number is drawn before its job commits, so what is younger than any
-- transaction of ours lives may have a smaller one beside it that nobody sees yet.
WITH next AS MATERIALIZED (
    SELECT id, tenant, queue, workflow, created_at FROM unstuck_jobs WHERE id > :after ORDER BY id LIMIT :batch
), young AS MATERIALIZED (
    SELECT MIN(id) AS id FROM next WHERE created_at > (SELECT unstuck_now()) - :settled
)
SELECT next.tenant, next.queue, next.workflow, COUNT(*) AS jobs, MAX(next.id) AS last
  FROM next, young
 WHERE young.id IS NULL OR next.id < young.id
 GROUP BY 1, 2, 3

-- name: move_enqueued
UPDATE unstuck_counted SET enqueued_to = :last

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
