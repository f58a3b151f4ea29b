-- Looks again: between the look and the lock the job may have been resumed, or somebody may have begun to wait for it.
DELETE FROM unstuck_done d
 WHERE d.job = ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:jobs AS json))))
   AND d.finished_at <= unstuck_now() - :retention
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
RETURNING d.job
