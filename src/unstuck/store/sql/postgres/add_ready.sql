INSERT INTO unstuck_ready (route, rank, job)
SELECT j.route, j.rank, j.id
  FROM unstuck_jobs j
 WHERE j.id = ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:jobs AS json))))
