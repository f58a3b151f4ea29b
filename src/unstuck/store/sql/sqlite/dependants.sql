-- Whom news of these jobs concerns: who waits for one of them, and those of them that wait themselves.
SELECT d.job FROM json_each(:jobs) AS r CROSS JOIN unstuck_dependencies d ON d.on_job = r.value
 UNION
SELECT d.job FROM json_each(:jobs) AS r CROSS JOIN unstuck_dependencies d ON d.job = r.value
 ORDER BY job
