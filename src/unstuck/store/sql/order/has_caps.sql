SELECT 1 AS found FROM unstuck_limits WHERE max_queued IS NOT NULL LIMIT 1
