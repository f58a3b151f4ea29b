-- A key lives until its end and never less than its job. SKIP LOCKED: one that a submit takes over at this instant, or that somebody
-- holds, is not waited for.
DELETE FROM unstuck_keys
 WHERE ctid = ANY (ARRAY(
       SELECT k.ctid
         FROM unstuck_keys k
        WHERE k.expires_at <= (SELECT unstuck_now())
          AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                           WHERE j.uid = k.job
                             AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
        ORDER BY k.expires_at
        LIMIT :batch OFFSET :past
          FOR UPDATE OF k SKIP LOCKED))
