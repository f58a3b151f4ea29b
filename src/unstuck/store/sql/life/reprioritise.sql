-- Rank is the time of submission less a minute per step, as at submit. Whoever stands in ready or in a line is taken from there first.
UPDATE unstuck_jobs SET priority = :priority, rank = created_at - CAST(:priority AS BIGINT) * 60000000 WHERE id = :job
