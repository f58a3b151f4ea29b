-- Whoever writes the answer first has decided: who comes second finds it no longer open. A wait that somebody holds at this
-- instant stays as it is: who answers here works for everybody.
UPDATE unstuck_waits
   SET answer = free.answer, payload = free.payload, by = free.by, answered_at = unstuck_now()
  FROM (SELECT r.*
          FROM {rows :rows AS r (job BIGINT, run BIGINT, key TEXT, answer TEXT, payload TEXT, by TEXT)}
          {by_key unstuck_waits AS x ON x.job = r.job AND x.run = r.run AND x.key = r.key AND x.answer IS NULL
                  FOR NO KEY UPDATE SKIP LOCKED}) AS free
 WHERE unstuck_waits.job = free.job AND unstuck_waits.run = free.run AND unstuck_waits.key = free.key AND unstuck_waits.answer IS NULL
RETURNING {postgres unstuck_waits.}*
