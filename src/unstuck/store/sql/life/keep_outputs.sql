-- Output comes in pieces: what is there stays, and the whole is capped.
INSERT INTO unstuck_outputs AS o (job, token, output, stack)
SELECT job, token, output, stack
  FROM {rows :rows AS r (job BIGINT, token BIGINT, output TEXT, stack TEXT)}
 WHERE TRUE
ON CONFLICT (job, token) DO UPDATE
   SET output = SUBSTR(COALESCE(o.output, '') || COALESCE(excluded.output, ''), 1, :cap),
       stack = COALESCE(excluded.stack, o.stack)
