-- Whether appointments are to be moved; `is_settled`: nobody can be writing one by the `ahead` of before any more.
SELECT leapt_at < unstuck_now() - CAST(:writing AS BIGINT) AS is_settled, ahead FROM unstuck_clock WHERE moved <> ahead
