-- The number of the first job that was submitted at :at or later, by halving: numbers grow with time.
WITH RECURSIVE halves (low, high) AS (
    SELECT COALESCE((SELECT MIN(id) FROM unstuck_jobs), 0), COALESCE((SELECT MAX(id) FROM unstuck_jobs), 0) + 1
     UNION ALL
    SELECT CASE WHEN middle.created_at < :at THEN middle.id + 1 ELSE halves.low END,
           CASE WHEN middle.created_at < :at THEN halves.high ELSE (halves.low + halves.high) / 2 END
      FROM halves
      JOIN unstuck_jobs middle
        ON middle.id = (SELECT MIN(id) FROM unstuck_jobs WHERE id >= (halves.low + halves.high) / 2)
     WHERE halves.low < halves.high
)
SELECT MAX(low) AS number FROM halves
