SELECT DISTINCT a.target AS id
  FROM unstuck_running a
 WHERE a.overdue_at <= unstuck_now() - :margin AND a.target IS NOT NULL
 LIMIT :batch
