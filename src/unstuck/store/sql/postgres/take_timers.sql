DELETE FROM unstuck_timers AS t
 USING json_to_recordset(CAST(:rows AS json)) AS r (due_at BIGINT, job BIGINT)
 WHERE t.kind = :kind AND t.due_at = r.due_at AND t.job = r.job
RETURNING t.job
