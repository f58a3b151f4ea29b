-- The open attempts of what these jobs wait for. While we hold them nobody can end them; one that is missing is being ended.
SELECT a.job
  FROM unstuck_running a
 WHERE a.job = ANY (ARRAY(SELECT d.on_job FROM unstuck_dependencies d WHERE d.job = ANY (CAST(:jobs AS BIGINT[]))))
 ORDER BY a.job
   FOR NO KEY UPDATE SKIP LOCKED
