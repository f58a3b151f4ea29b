SELECT unit, used FROM unstuck_usage WHERE job = :job AND run = :run ORDER BY unit
