-- The open attempts of what these jobs wait for. While we hold them nobody can end them; one that is missing is being ended.
SELECT a.job
  FROM unstuck_running a
 WHERE a.job {among} SELECT d.on_job FROM unstuck_dependencies d WHERE d.job {in :jobs BIGINT}{end}
 ORDER BY a.job
   {lock FOR NO KEY UPDATE SKIP LOCKED}
