-- SKIP LOCKED: who ends stays at this instant takes the timer himself, and a claim waits for nobody.
DELETE FROM unstuck_timers
 WHERE ctid = ANY (ARRAY(
       SELECT stay.ctid
         FROM json_to_recordset(CAST(:rows AS json)) AS r (due_at BIGINT, job BIGINT)
        CROSS JOIN LATERAL (
              SELECT s.ctid
                FROM unstuck_timers AS s
               WHERE s.kind = 'expire' AND s.due_at = r.due_at AND s.job = r.job
               LIMIT 1
                 FOR UPDATE SKIP LOCKED) AS stay))
RETURNING job
