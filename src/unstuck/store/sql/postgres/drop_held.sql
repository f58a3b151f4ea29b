DELETE FROM unstuck_blacklist_held AS h USING json_to_recordset(CAST(:rows AS json)) AS r (entry BIGINT, job BIGINT)
 WHERE h.entry = r.entry AND h.job = r.job
