-- Looks again: between the look and the lock the job may have been resumed, or somebody may have begun to wait for it.
DELETE FROM unstuck_done AS d
 WHERE d.job {in :jobs BIGINT}
   AND d.finished_at <= unstuck_now() - :retention
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
RETURNING job
