-- As `ancestors`, of several jobs at once: each of :jobs is `below`.
WITH RECURSIVE above (below, number, via, place) AS (
    SELECT r.job, r.job, r.job, 0 FROM {list :jobs AS r (job BIGINT)}
     UNION ALL
    SELECT above.below, own.parent, own.child, above.place + 1
      FROM above
      {all_by_key unstuck_children AS own ON own.child = above.number}
     WHERE above.place < 20
)
SELECT above.below, above.number, j.uid, t.id AS keeps,
       j.state = 'WAITING'
           AND (SELECT 1 FROM unstuck_dependencies d WHERE d.job = above.number AND d.on_job = above.via LIMIT 1) IS NOT NULL AS awaits
  FROM above
  {by_key unstuck_jobs AS j ON j.id = above.number}
  {by_key_or_null unstuck_targets AS t ON t.id = j.target AND t.head = j.id}
 ORDER BY above.below, above.place
