-- Those of these jobs that still wait for others.
SELECT r.value AS job FROM json_each(:jobs) AS r WHERE EXISTS (SELECT 1 FROM unstuck_dependencies d WHERE d.job = r.value)
