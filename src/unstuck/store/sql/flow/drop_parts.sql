-- All but the one that keeps the number.
DELETE FROM unstuck_parts WHERE job = :job AND number < (SELECT MAX(number) FROM unstuck_parts WHERE job = :job)
