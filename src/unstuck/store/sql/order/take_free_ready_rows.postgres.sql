-- One that somebody is about to claim is left to him.
DELETE FROM unstuck_ready
 WHERE ctid = ANY (ARRAY(
       SELECT free.spot
         FROM json_to_recordset(CAST(:rows AS json)) AS r (route BIGINT, rank BIGINT, job BIGINT)
        CROSS JOIN LATERAL (
              SELECT t.ctid AS spot
                FROM unstuck_ready t
               WHERE t.route = r.route AND t.rank = r.rank AND t.job = r.job
               LIMIT 1
                 FOR UPDATE SKIP LOCKED) AS free))
RETURNING job
