SELECT COALESCE(MAX(number), 0) AS last, COUNT(NULLIF(name, '')) AS names FROM unstuck_parts WHERE job = :job
