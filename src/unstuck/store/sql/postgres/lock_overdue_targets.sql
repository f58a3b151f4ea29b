SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT a.target FROM unstuck_running a
                        WHERE a.overdue_at <= (SELECT unstuck_now() - :margin) AND a.target IS NOT NULL
                        ORDER BY a.job LIMIT :batch))
 ORDER BY id
   FOR NO KEY UPDATE
