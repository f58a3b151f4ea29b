-- The totals: what the series count, ever since, for counters that never fall.

-- name: add_totals
-- Of the same runs as add_series, in the same transaction.
INSERT INTO unstuck_totals AS t (tenant, queue, workflow, moved_at, {counts totals})
SELECT tenant, queue, workflow, (SELECT unstuck_now()), {counts totals}
  FROM {rows :rows AS r (tenant TEXT, queue TEXT, workflow TEXT, {counts totals BIGINT})}
 WHERE TRUE
ON CONFLICT (tenant, queue, workflow) DO UPDATE SET moved_at = excluded.moved_at, {counts totals + t}

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
