-- Set aside for something that has been done since, or that nobody has to do any more. Some at a time.
SELECT q.duty, q.item
  FROM unstuck_quarantine q
  LEFT JOIN unstuck_running a ON a.job = q.item
 WHERE (q.duty IN ('settle', 'recover', 'overdue') AND (a.job IS NULL OR a.claimed_at > q.since_at))
    OR (q.duty IN ('claim', 'start', 'expire', 'orphan', 'blacklist')
        AND (a.job IS NOT NULL
             OR EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = q.item)
             OR NOT EXISTS (SELECT 1 FROM unstuck_jobs j WHERE j.id = q.item)))
    OR (q.duty = 'children'
        AND NOT EXISTS (SELECT 1 FROM unstuck_children c WHERE c.child = q.item AND c.left_at IS NOT NULL))
 LIMIT :batch
