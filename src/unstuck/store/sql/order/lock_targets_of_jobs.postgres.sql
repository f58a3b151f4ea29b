-- Of jobs that run. One that somebody holds is skipped, and with it what runs there: it comes again.
SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT a.target FROM unstuck_running a
                        WHERE a.job = ANY (CAST(:jobs AS BIGINT[])) AND a.target IS NOT NULL))
 ORDER BY id
   FOR NO KEY UPDATE SKIP LOCKED
