INSERT INTO unstuck_dependencies (job, on_job)
SELECT job, on_job FROM {rows :rows AS r (job BIGINT, on_job BIGINT)}
