-- The events at the positions above :after up to :through; those of forgotten jobs are gone with them. LATERAL ... LIMIT 1 finds each by
-- its key whatever the planner thinks of the arrays. :kinds is ',a,b,' or NULL.
SELECT page.first + spot.place - 1 AS position, j.uid, j.tenant, j.queue, j.workflow, e.number, e.kind, e.at, e.run, e.token, e.data
  FROM (SELECT first, jobs, numbers
          FROM unstuck_feed
         WHERE last > :after AND last <= CAST(:through AS BIGINT) + 500 AND first <= :through
         ORDER BY last
         LIMIT :most) AS page
 CROSS JOIN LATERAL UNNEST(page.jobs, page.numbers) WITH ORDINALITY AS spot (job, number, place)
 CROSS JOIN LATERAL (SELECT * FROM unstuck_events WHERE job = spot.job AND number = spot.number LIMIT 1) AS e
 CROSS JOIN LATERAL (SELECT uid, tenant, queue, workflow FROM unstuck_jobs WHERE id = spot.job LIMIT 1) AS j
 WHERE page.first + spot.place - 1 > :after AND page.first + spot.place - 1 <= :through
   AND (CAST(:tenant AS TEXT) IS NULL OR j.tenant = CAST(:tenant AS TEXT))
   AND (CAST(:job AS TEXT) IS NULL OR j.uid = CAST(:job AS TEXT))
   AND (CAST(:workflow AS TEXT) IS NULL OR j.workflow = CAST(:workflow AS TEXT))
   AND {within j.queue j.workflow}
   AND (CAST(:kinds AS TEXT) IS NULL OR CAST(:kinds AS TEXT) LIKE '%,' || e.kind || ',%')
 ORDER BY position
