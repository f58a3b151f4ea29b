-- As `ancestors`, of several jobs at once: :jobs[...] is `below`.
WITH RECURSIVE above (below, number, via, place) AS (
    SELECT r.job, r.job, r.job, 0 FROM unnest(CAST(:jobs AS BIGINT[])) AS r (job)
     UNION ALL
    SELECT above.below, own.parent, own.child, above.place + 1
      FROM above
     CROSS JOIN LATERAL (SELECT c.parent, c.child FROM unstuck_children c WHERE c.child = above.number OFFSET 0) AS own
     WHERE above.place < 20
)
SELECT above.below, above.number, j.uid, t.id AS keeps,
       j.state = 'WAITING'
           AND (SELECT 1 FROM unstuck_dependencies d WHERE d.job = above.number AND d.on_job = above.via LIMIT 1) IS NOT NULL AS awaits
  FROM above
 CROSS JOIN LATERAL (SELECT id, uid, state, target FROM unstuck_jobs WHERE id = above.number LIMIT 1) AS j
  LEFT JOIN LATERAL (SELECT id FROM unstuck_targets WHERE id = j.target AND head = j.id LIMIT 1) AS t ON TRUE
 ORDER BY above.below, above.place
