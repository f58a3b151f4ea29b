-- Of the quarantine: those whose timer is still there, the one that has waited longest for a try first. Every claimer asks twice a
-- second: the pauses grow up to 3 s, so that what is slow is not tried all the time.
SELECT t.due_at, t.job
  FROM unstuck_quarantine q
  JOIN unstuck_jobs j ON j.id = q.item
  JOIN unstuck_timers t ON t.kind = :kind AND t.due_at = CASE CAST(:kind AS TEXT) WHEN 'start' THEN j.available_at ELSE j.expires_at END AND t.job = j.id
 WHERE q.duty = :kind
   AND q.tried_at + CASE WHEN q.tries < 6 THEN q.tries ELSE 6 END * 500000 <= unstuck_now()
 ORDER BY q.tried_at, q.item
 LIMIT :batch
