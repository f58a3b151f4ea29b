DELETE FROM unstuck_ready AS t
 USING json_to_recordset(CAST(:rows AS json)) AS r (route BIGINT, rank BIGINT, job BIGINT)
 WHERE t.route = r.route AND t.rank = r.rank AND t.job = r.job
RETURNING t.job
