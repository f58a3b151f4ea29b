-- octet_length reads no text that is stored apart; SQLite calls it otherwise, and would carry whole texts through the window.
-- The open attempts of one claim behind a place in it, in claim order. Texts up to :room bytes, at least those of the first; the
-- rows behind that come without them (payload IS NULL).
SELECT id, token, run, route, rank, policy, alone, attempt, has_target, uid, trace, span, CASE WHEN upto - bytes < :room THEN payload END AS payload
  FROM (SELECT claimed.*, SUM(bytes) OVER (ORDER BY rank, id ROWS UNBOUNDED PRECEDING) AS upto
          FROM (SELECT j.id, r.token, j.uid, r.run, j.route, j.rank, j.payload, j.policy, j.alone, 1 + j.failures + j.losses + j.suspects AS attempt,
                       j.target IS NOT NULL AS has_target, j.trace, j.span,
                       160 + octet_length(j.payload) + COALESCE(octet_length(j.trace), 0) AS bytes
                  FROM unstuck_running r
                  JOIN unstuck_jobs j ON j.id = r.job
                 WHERE r.worker = :worker AND r.claim = :claim AND (j.rank, j.id) > (:rank, :job)) AS claimed) AS sized
 ORDER BY rank, id
