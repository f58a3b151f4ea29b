INSERT INTO unstuck_line (target, place, job, route)
SELECT target, place, job, route
  FROM json_to_recordset(CAST(:rows AS json)) AS r (target BIGINT, place BIGINT, job BIGINT, route BIGINT)
