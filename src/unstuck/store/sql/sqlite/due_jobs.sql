SELECT due_at, job FROM unstuck_timers WHERE kind = 'start' AND due_at <= unstuck_now() ORDER BY due_at, job LIMIT :batch
