-- The events at the positions above :after up to :through; those of forgotten jobs are gone with them, and news when their time is over.
-- LATERAL ... LIMIT 1 finds each by its key whatever the planner thinks of the arrays. :kinds is ',a,b,' or NULL.
-- FeedFilter.admits says the same in Python.
SELECT page.first + spot.place - 1 AS position, about.*, e.kind, e.at, e.data
  FROM (SELECT first, jobs, numbers
          FROM unstuck_feed
         WHERE last > :after AND last <= CAST(:through AS BIGINT) + 500 AND first <= :through
         ORDER BY last
         LIMIT :most) AS page
 CROSS JOIN LATERAL UNNEST(page.jobs, page.numbers) WITH ORDINALITY AS spot (job, number, place)
 CROSS JOIN LATERAL (SELECT * FROM unstuck_events WHERE job = spot.job AND number = spot.number LIMIT 1) AS e
 CROSS JOIN LATERAL (
       (SELECT j.uid, j.tenant, j.queue, j.workflow, (SELECT t.name FROM unstuck_targets AS t WHERE t.id = j.target) AS target,
               CAST(NULL AS TEXT) AS topic, CAST(NULL AS TEXT) AS worker, CAST(NULL AS TEXT) AS by, e.number, e.run, e.token
          FROM unstuck_jobs AS j
         WHERE spot.job <> 0 AND j.id = spot.job
         LIMIT 1)
        UNION ALL
       (SELECT n.job, n.tenant, n.queue, n.workflow, n.target, n.topic, n.worker, n.by, NULL, NULLIF(e.run, 0), NULLIF(e.token, 0)
          FROM unstuck_news AS n
         WHERE spot.job = 0 AND n.number = spot.number AND (n.expires_at IS NULL OR n.expires_at > (SELECT unstuck_now()))
         LIMIT 1)) AS about
 WHERE page.first + spot.place - 1 > :after AND page.first + spot.place - 1 <= :through
   AND (CAST(:tenant AS TEXT) IS NULL OR about.tenant IN (CAST(:tenant AS TEXT), '*'))
   AND (CAST(:job AS TEXT) IS NULL OR about.uid = CAST(:job AS TEXT))
   AND (CAST(:workflow AS TEXT) IS NULL OR about.workflow = CAST(:workflow AS TEXT))
   AND (CAST(:target AS TEXT) IS NULL OR about.target = CAST(:target AS TEXT))
   AND (CAST(:topic AS TEXT) IS NULL OR about.topic = CAST(:topic AS TEXT))
   AND {within about.queue about.workflow}
   AND (CAST(:kinds AS TEXT) IS NULL OR POSITION(',' || e.kind || ',' IN CAST(:kinds AS TEXT)) > 0)
 ORDER BY position
