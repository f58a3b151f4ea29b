-- SQLite has no writing CTEs: a claim is a statement per table.

-- name: may_claim
SELECT 1 AS yes
  FROM unstuck_workers
 WHERE id = :worker AND state = 'active' AND lease_until > unstuck_now()
   AND (SELECT COUNT(*) FROM unstuck_running WHERE worker = :worker AND claim = :claim) = :opened

-- name: gates_in_use
SELECT has_pauses, has_limits FROM unstuck_gates_in_use

-- name: routes_to_count
-- May name a route twice: DISTINCT would work the whole view out first.
SELECT route FROM unstuck_route_limits WHERE route IN (SELECT value FROM json_each(:routes))

-- name: started
SELECT r.value ->> 'limit_id' AS limit_id, r.value ->> 'bucket' AS bucket,
       (SELECT COALESCE(SUM(s.starts), 0) FROM unstuck_starts s
         WHERE s.limit_id = r.value ->> 'limit_id' AND s.bucket = r.value ->> 'bucket'
           AND s.at > unstuck_now() - (r.value ->> 'per_us')) AS started
  FROM json_each(:rows) AS r

-- name: pick_ready
SELECT job
  FROM unstuck_ready
 WHERE route = :route
   AND (rank, job) >= (:rank, :job)
   AND (rank, job) <= (:last_rank, :last_job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks WHERE unstuck_body_marks.job = unstuck_ready.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = :without AND q.item = unstuck_ready.job)
   AND (:only IS NULL OR job = :only)
 ORDER BY rank, job
 LIMIT :most

-- name: open_attempts
INSERT INTO unstuck_running (job, token, claim, worker, route, policy, target, run, event_count, claimed_at)
SELECT j.id, j.token + 1, :claim, :worker, j.route, j.policy, j.target, j.run, j.event_count + 1, :now
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value

-- name: opened_jobs
-- The attempts that this transaction has just opened, in claim order. A payload above :most bytes is left for claimed_jobs.
SELECT j.id, r.token, r.run, j.route, j.rank, j.policy, j.alone, 1 + j.failures + j.losses + j.suspects AS attempt, j.expires_at,
       j.target IS NOT NULL AS has_target, j.uid, j.trace, j.span,
       CASE WHEN length(CAST(j.payload AS BLOB)) <= :most THEN j.payload END AS payload
  FROM unstuck_running r
  JOIN unstuck_jobs j ON j.id = r.job
 WHERE r.worker = :worker AND r.claim = :claim
 ORDER BY j.rank, j.id

-- name: claimed_events
INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT a.job, a.event_count, a.claimed_at, 'claimed', a.run, a.token, :data
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value

-- name: leave_ready
DELETE FROM unstuck_ready
 WHERE (route, rank, job) IN (SELECT j.route, j.rank, j.id
                                FROM json_each(:jobs) AS r
                                CROSS JOIN unstuck_jobs j ON j.id = r.value)

-- name: claimed_jobs
-- octet_length is younger than the SQLite of many machines.
-- The open attempts of one claim behind a place in it, in claim order. Texts up to :room bytes, at least those of the first; the
-- rows behind that come without them (payload IS NULL).
SELECT j.id, r.token, r.run, j.route, j.rank, j.policy, j.alone, 1 + j.failures + j.losses + j.suspects AS attempt,
       j.target IS NOT NULL AS has_target, j.uid, j.trace, j.span, CASE WHEN r.before < :room THEN j.payload END AS payload
  FROM (SELECT a.job, a.token, a.run,
               COALESCE(SUM(160 + length(CAST(b.payload AS BLOB)))
                   OVER (ORDER BY b.rank, b.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
          FROM unstuck_running a
          JOIN unstuck_jobs b ON b.id = a.job
         WHERE a.worker = :worker AND a.claim = :claim AND (b.rank, b.id) > (:rank, :job)) AS r
  JOIN unstuck_jobs j ON j.id = r.job
 ORDER BY j.rank, j.id
