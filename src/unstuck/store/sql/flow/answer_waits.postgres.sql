-- Whoever writes the answer first has decided: who comes second finds it no longer open. A wait that somebody holds at this
-- instant stays as it is: who answers here works for everybody.
UPDATE unstuck_waits AS w
   SET answer = free.answer, payload = free.payload, by = free.by, answered_at = unstuck_now()
  FROM (SELECT r.*
          FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, run BIGINT, key TEXT, answer TEXT, payload TEXT, by TEXT)
         CROSS JOIN LATERAL (
               SELECT 1
                 FROM unstuck_waits x
                WHERE x.job = r.job AND x.run = r.run AND x.key = r.key AND x.answer IS NULL
                LIMIT 1
                  FOR NO KEY UPDATE SKIP LOCKED) AS x) AS free
 WHERE w.job = free.job AND w.run = free.run AND w.key = free.key AND w.answer IS NULL
RETURNING w.*
