-- Of the quarantine: those whose timer is still there, the one that has waited longest for a try first.
SELECT t.due_at, t.job
  FROM unstuck_quarantine q
  JOIN unstuck_jobs j ON j.id = q.item
  JOIN unstuck_timers t ON t.kind = :kind AND t.due_at = CASE CAST(:kind AS TEXT) WHEN 'start' THEN j.available_at ELSE j.expires_at END AND t.job = j.id
 WHERE q.duty = :kind
 ORDER BY q.tried_at, q.item
 LIMIT :batch
