-- Behind what came before it: said twice, because an answer was lost, it stands there once.
-- WHERE true: or the parser would take ON for the start of a join.
INSERT INTO unstuck_outputs AS o (job, token, output)
SELECT value ->> 'job', value ->> 'token', value ->> 'output' FROM json_each(:rows) WHERE true
ON CONFLICT (job, token) DO UPDATE
   SET output = SUBSTR(SUBSTR(COALESCE(o.output, ''), 1,
                              (SELECT COALESCE(value ->> 'at', :cap) FROM json_each(:rows)
                                WHERE value ->> 'job' = o.job AND value ->> 'token' = o.token))
                       || excluded.output, 1, :cap)
