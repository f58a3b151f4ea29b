-- Up to :most rows, and those of them before which there are less than :room bytes: at least one, if there is one.
SELECT p.name, p.ordinal, p.run, p.token, p.at, p.duration_ms, p.result, p.bytes
  FROM (SELECT s.*, {bytes s.result} AS bytes, SUM({bytes s.result}) OVER (ORDER BY s.name, s.ordinal) AS upto
          FROM (SELECT name, ordinal, run, token, at, duration_ms, result
                  FROM unstuck_steps
                 WHERE job = :job
                 ORDER BY name, ordinal
                 LIMIT :most OFFSET :skip) AS s) AS p
 WHERE p.upto - p.bytes < :room
 ORDER BY p.name, p.ordinal
