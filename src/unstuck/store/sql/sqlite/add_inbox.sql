INSERT INTO unstuck_inbox (target, job)
SELECT r.value ->> 'target', r.value ->> 'job' FROM json_each(:rows) AS r
