-- Held for an entry that was removed since. aside = 1: those that could not be moved alone, and only those.
SELECT h.entry, h.job, b.removed_by
  FROM unstuck_blacklist_held h
  JOIN unstuck_blacklist b ON b.id = h.entry
 WHERE b.removed_at IS NOT NULL
   AND CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'blacklist' AND q.item = h.job) IS NULL THEN 0 ELSE 1 END = :aside
 ORDER BY h.entry, h.job
 LIMIT :batch
