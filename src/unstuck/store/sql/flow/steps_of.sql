SELECT name, ordinal, run, token, at, duration_ms, result FROM unstuck_steps WHERE job = :job ORDER BY at, name, ordinal
