-- Output comes in pieces: what is there stays, and the whole is capped.
INSERT INTO unstuck_outputs AS o (job, token, output, stack)
SELECT job, token, output, stack
  FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, token BIGINT, output TEXT, stack TEXT)
ON CONFLICT (job, token) DO UPDATE
   SET output = SUBSTR(COALESCE(o.output, '') || COALESCE(excluded.output, ''), 1, :cap),
       stack = COALESCE(excluded.stack, o.stack)
