-- aside = 1: those that could not be moved alone, and only those. entry IS NOT NULL, as it always is: a condition on the job alone
-- makes SQLite build a Bloom filter of all that wait.
SELECT g.entry, g.job
  FROM unstuck_at_the_gate g
 WHERE CASE WHEN (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'blacklist' AND q.item = g.job AND g.entry IS NOT NULL) IS NULL THEN 0 ELSE 1 END = :aside
 LIMIT :batch
