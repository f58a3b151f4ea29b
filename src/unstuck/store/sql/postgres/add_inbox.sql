INSERT INTO unstuck_inbox (target, job)
SELECT target, job FROM json_to_recordset(CAST(:rows AS json)) AS r (target BIGINT, job BIGINT)
