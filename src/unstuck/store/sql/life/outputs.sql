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

-- name: output_marks
-- Of each of these jobs what changes when it prints, or gives a part of its result: the last attempt that said anything, in how many bytes, and the
-- number of its last part. Only the newest attempt can say more.
SELECT j.uid, o.token, COALESCE({bytes o.output}, 0) AS bytes, (SELECT MAX(p.number) FROM unstuck_parts p WHERE p.job = j.id) AS part
  FROM {list :jobs AS r (uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key_or_null unstuck_outputs AS o ON o.job = j.id AND o.token = (SELECT MAX(m.token) FROM unstuck_outputs m WHERE m.job = j.id)}
