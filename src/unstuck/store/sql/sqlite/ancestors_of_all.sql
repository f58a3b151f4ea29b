-- As `ancestors`, of several jobs at once: each of :jobs is `below`.
WITH RECURSIVE above (below, number, via, place) AS (
    SELECT r.value, r.value, r.value, 0 FROM json_each(:jobs) AS r
     UNION ALL
    SELECT above.below, c.parent, c.child, above.place + 1
      FROM above
      CROSS JOIN unstuck_children c ON c.child = above.number
     WHERE above.place < 20
)
SELECT above.below, above.number, j.uid, t.id AS keeps,
       j.state = 'WAITING' AND EXISTS (SELECT 1 FROM unstuck_dependencies d WHERE d.job = above.number AND d.on_job = above.via) AS awaits
  FROM above
  CROSS JOIN unstuck_jobs j ON j.id = above.number
  LEFT JOIN unstuck_targets t ON t.id = j.target AND t.head = j.id
 ORDER BY above.below, above.place
