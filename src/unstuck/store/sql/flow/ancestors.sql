-- The job itself first, then who spawned it, and so on. depth: its own, counted from the top. keeps: the target whose turn it has.
-- awaits: it is parked until the one before it in this list has ended.
WITH RECURSIVE above (number, via, place) AS (
    SELECT j.id, j.id, 0 FROM unstuck_jobs j WHERE j.id = :job
     UNION ALL
    SELECT c.parent, c.child, above.place + 1
      FROM above
      JOIN unstuck_children c ON c.child = above.number
     WHERE above.place < 20
)
SELECT above.number, j.uid, j.tenant, j.policy, own.payer, COALESCE(own.depth, 0) AS depth, t.id AS keeps,
       j.state = 'WAITING' AND EXISTS (SELECT 1 FROM unstuck_dependencies d WHERE d.job = above.number AND d.on_job = above.via) AS awaits
  FROM above
  JOIN unstuck_jobs j ON j.id = above.number
  LEFT JOIN unstuck_children own ON own.child = above.number
  LEFT JOIN unstuck_targets t ON t.id = j.target AND t.head = j.id
 ORDER BY above.place
