-- Looks again: between the look and the lock the job may have been resumed.
DELETE FROM unstuck_done
 WHERE job = ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:jobs AS json))))
   AND finished_at <= unstuck_now() - :retention
RETURNING job
