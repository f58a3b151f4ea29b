-- Whoever writes the answer first has decided: who comes second finds it no longer open.
UPDATE unstuck_waits
   SET answer = :answer, payload = :payload, by = :by, comment = :comment, answered_at = unstuck_now()
 WHERE job = :job AND run = :run AND key = :key AND answer IS NULL
