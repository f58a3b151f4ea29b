DELETE FROM unstuck_holds AS h
 USING json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, worker BIGINT)
 WHERE h.job = r.job AND h.worker = r.worker
