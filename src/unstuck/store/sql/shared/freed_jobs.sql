-- Held for an entry that was removed since.
SELECT h.entry, h.job, b.removed_by
  FROM unstuck_blacklist_held h
  JOIN unstuck_blacklist b ON b.id = h.entry
 WHERE b.removed_at IS NOT NULL
 ORDER BY h.entry, h.job
 LIMIT :batch
