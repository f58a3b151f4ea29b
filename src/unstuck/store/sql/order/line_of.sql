-- In the order in which a promotion takes them.
SELECT v.*
  FROM (SELECT l.place, l.job
          FROM unstuck_line l
          JOIN unstuck_targets t ON t.id = l.target
         WHERE t.tenant = :tenant AND t.name = :name
         ORDER BY l.place, l.job
         LIMIT :most) AS first
  JOIN unstuck_job_rows v ON v.number = first.job
 ORDER BY first.place, first.job
