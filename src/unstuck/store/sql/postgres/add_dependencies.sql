INSERT INTO unstuck_dependencies (job, on_job)
SELECT job, on_job FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, on_job BIGINT)
