SELECT EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target') AS has_pauses,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL OR rate IS NOT NULL) AS has_limits
