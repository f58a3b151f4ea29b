INSERT INTO unstuck_line (target, place, job, route)
SELECT target, place, job, route
  FROM {rows :rows AS r (target BIGINT, place BIGINT, job BIGINT, route BIGINT)}
