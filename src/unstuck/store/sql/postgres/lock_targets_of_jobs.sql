SELECT id
  FROM unstuck_targets
 WHERE id = ANY (ARRAY(SELECT a.target FROM unstuck_running a
                        WHERE a.job = ANY (CAST(:jobs AS BIGINT[])) AND a.target IS NOT NULL))
 ORDER BY id
   FOR NO KEY UPDATE
