-- Output comes in pieces: what is there stays, and the whole is capped.
INSERT INTO unstuck_outputs AS o (job, token, output, stack)
SELECT value ->> 'job', value ->> 'token', value ->> 'output', value ->> 'stack' FROM json_each(:rows) WHERE TRUE
ON CONFLICT (job, token) DO UPDATE
   SET output = SUBSTR(COALESCE(o.output, '') || COALESCE(excluded.output, ''), 1, :cap),
       stack = COALESCE(excluded.stack, o.stack)
