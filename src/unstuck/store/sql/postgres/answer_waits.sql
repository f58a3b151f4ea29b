-- Whoever writes the answer first has decided: who comes second finds it no longer open.
UPDATE unstuck_waits AS w
   SET answer = r.answer, payload = r.payload, by = r.by, answered_at = unstuck_now()
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, run BIGINT, key TEXT, answer TEXT, payload TEXT, by TEXT)
 WHERE w.job = r.job AND w.run = r.run AND w.key = r.key AND w.answer IS NULL
RETURNING w.*
