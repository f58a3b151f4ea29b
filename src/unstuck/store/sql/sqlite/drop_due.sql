DELETE FROM unstuck_timers
 WHERE (kind, due_at, job) IN (SELECT kind, due_at, job FROM unstuck_timers
                                WHERE kind = 'start' AND due_at <= :now ORDER BY due_at, job LIMIT :batch)
