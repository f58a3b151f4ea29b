-- Behind what came before it: said twice, because an answer was lost, it stands there once.
WITH said AS (
    SELECT job, token, output, at
      FROM {rows :rows AS r (job BIGINT, token BIGINT, output TEXT, at INT)}
)
INSERT INTO unstuck_outputs AS o (job, token, output)
SELECT job, token, output FROM said
 WHERE TRUE
ON CONFLICT (job, token) DO UPDATE
   SET output = SUBSTR(SUBSTR(COALESCE(o.output, ''), 1,
                              (SELECT COALESCE(s.at, :cap) FROM said s WHERE s.job = o.job AND s.token = o.token))
                       || excluded.output, 1, :cap)
