-- How long until the first of them comes due, in microseconds; below zero where it is overdue.
SELECT due_at - unstuck_now() AS ahead FROM unstuck_timers WHERE kind = :kind ORDER BY due_at, job LIMIT 1
