INSERT INTO unstuck_dependencies (job, on_job)
SELECT r.value ->> 'job', r.value ->> 'on_job' FROM json_each(:rows) AS r
