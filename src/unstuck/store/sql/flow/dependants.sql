-- Whom news of these jobs concerns: who waits for one of them, and those of them that wait themselves.
SELECT d.job FROM unstuck_dependencies d WHERE d.on_job {in :jobs BIGINT}
 UNION
SELECT d.job FROM unstuck_dependencies d WHERE d.job {in :jobs BIGINT}
 ORDER BY job
