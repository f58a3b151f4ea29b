-- octet_length is younger than the SQLite of many machines.
-- The open attempts of one claim behind a place in it, in claim order. Texts up to :room bytes, at least those of the first; the
-- rows behind that come without them (payload IS NULL).
SELECT j.id, r.token, r.run, j.route, j.rank, j.policy, j.alone, j.created_at, j.failures, j.losses, j.suspects,
       j.target IS NOT NULL AS has_target,
       CASE WHEN r.before < :room THEN j.uid END AS uid, CASE WHEN r.before < :room THEN j.tenant END AS tenant,
       CASE WHEN r.before < :room THEN j.queue END AS queue, CASE WHEN r.before < :room THEN j.workflow END AS workflow,
       CASE WHEN r.before < :room THEN j.payload END AS payload
  FROM (SELECT a.job, a.token, a.run,
               COALESCE(SUM(160 + length(CAST(b.tenant AS BLOB)) + length(CAST(b.queue AS BLOB)) + length(CAST(b.workflow AS BLOB)) + length(CAST(b.payload AS BLOB)))
                   OVER (ORDER BY b.rank, b.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
          FROM unstuck_running a
          JOIN unstuck_jobs b ON b.id = a.job
         WHERE a.worker = :worker AND a.claim = :claim AND (b.rank, b.id) > (:rank, :job)) AS r
  JOIN unstuck_jobs j ON j.id = r.job
 ORDER BY j.rank, j.id
