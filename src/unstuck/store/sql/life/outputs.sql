-- What attempts print, and how far they say they are.

-- name: append_outputs
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

-- name: keep_outputs
-- Output comes in pieces: what is there stays, and the whole is capped.
INSERT INTO unstuck_outputs AS o (job, token, output, stack)
SELECT job, token, output, stack
  FROM {rows :rows AS r (job BIGINT, token BIGINT, output TEXT, stack TEXT)}
 WHERE TRUE
ON CONFLICT (job, token) DO UPDATE
   SET output = SUBSTR(COALESCE(o.output, '') || COALESCE(excluded.output, ''), 1, :cap),
       stack = COALESCE(excluded.stack, o.stack)

-- name: set_progress
INSERT INTO unstuck_progress (job, token, value, at)
SELECT job, token, progress, unstuck_now()
  FROM {rows :rows AS r (job BIGINT, token BIGINT, progress TEXT)}
 WHERE TRUE
ON CONFLICT (job) DO UPDATE SET token = excluded.token, value = excluded.value, at = excluded.at

-- name: outputs
SELECT o.token, o.output, o.stack
  FROM unstuck_jobs j
  JOIN unstuck_outputs o ON o.job = j.id AND o.token > :after AND o.token <= :upto
 WHERE j.uid = :uid AND j.tenant = :tenant
