-- Whom news of these jobs concerns: who waits for one of them, and those of them that wait themselves.
SELECT d.job FROM unstuck_dependencies d WHERE d.on_job = ANY (CAST(:jobs AS BIGINT[]))
 UNION
SELECT d.job FROM unstuck_dependencies d WHERE d.job = ANY (CAST(:jobs AS BIGINT[]))
 ORDER BY job
