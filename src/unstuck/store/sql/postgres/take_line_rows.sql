DELETE FROM unstuck_line AS l
 USING json_to_recordset(CAST(:rows AS json)) AS r (target BIGINT, place BIGINT, job BIGINT)
 WHERE l.target = r.target AND l.place = r.place AND l.job = r.job
RETURNING l.job
