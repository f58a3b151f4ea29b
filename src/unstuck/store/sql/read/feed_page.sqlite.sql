-- The events at the positions above :after up to :through; those of forgotten jobs are gone with them, and news when their time is over.
-- :kinds is ',a,b,' or NULL. FeedFilter.admits says the same in Python.
SELECT * FROM (
    SELECT e.id AS position, j.uid, j.tenant, j.queue, j.workflow, (SELECT t.name FROM unstuck_targets t WHERE t.id = j.target) AS target,
           NULL AS topic, NULL AS worker, NULL AS by, e.number, e.run, e.token, e.kind, e.at, e.data
      FROM unstuck_events e
     CROSS JOIN unstuck_jobs j ON j.id = e.job
     WHERE e.id > :after AND e.id <= :through
     UNION ALL
    SELECT e.id, n.job, n.tenant, n.queue, n.workflow, n.target, n.topic, n.worker, n.by, NULL, NULLIF(e.run, 0), NULLIF(e.token, 0),
           e.kind, e.at, e.data
      FROM unstuck_events e
     CROSS JOIN unstuck_news n ON e.job = 0 AND n.number = e.number AND (n.expires_at IS NULL OR n.expires_at > (SELECT unstuck_now()))
     WHERE e.id > :after AND e.id <= :through) AS about
 WHERE (:tenant IS NULL OR about.tenant IN (:tenant, '*'))
   AND (:job IS NULL OR about.uid = :job)
   AND (:workflow IS NULL OR about.workflow = :workflow)
   AND (:target IS NULL OR about.target = :target)
   AND (:topic IS NULL OR about.topic = :topic)
   AND {within about.queue about.workflow}
   AND (:kinds IS NULL OR INSTR(:kinds, ',' || about.kind || ',') > 0)
 ORDER BY position
 LIMIT :most
