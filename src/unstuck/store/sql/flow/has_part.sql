SELECT 1 AS found FROM unstuck_parts WHERE job = :job AND name = :name
