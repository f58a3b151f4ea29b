-- Finished steps.

-- name: attempt_run
SELECT run FROM unstuck_running WHERE job = :job AND token = :token AND claim = :claim

-- name: count_steps
-- No further than :most of each.
SELECT r.job, (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_steps s WHERE s.job = r.job LIMIT :most) AS counted) AS steps
  FROM {list :jobs AS r (job BIGINT)}

-- name: add_steps
-- Their running rows are locked by this transaction.
INSERT INTO unstuck_steps (job, name, ordinal, run, token, at, duration_ms, result)
SELECT r.job, r.name, r.ordinal, a.run, a.token, unstuck_now(), r.duration_ms, r.result
  FROM {rows :rows AS r (job BIGINT, name TEXT, ordinal BIGINT, duration_ms BIGINT, result TEXT)}
  {by_key unstuck_running AS a ON a.job = r.job}
 WHERE TRUE
 ORDER BY r.job, {binary r.name}, r.ordinal
ON CONFLICT (job, name, ordinal) DO NOTHING

-- name: forgive_losses
UPDATE unstuck_jobs SET losses = 0 WHERE id {in :jobs BIGINT} AND losses > 0

-- name: journal_steps
-- Up to :most rows, and those of them before which there are less than :room bytes: at least one, if there is one.
SELECT p.name, p.ordinal, p.run, p.token, p.at, p.duration_ms, p.result, p.bytes
  FROM (SELECT s.*, {bytes s.result} AS bytes, SUM({bytes s.result}) OVER (ORDER BY s.name, s.ordinal) AS upto
          FROM (SELECT name, ordinal, run, token, at, duration_ms, result
                  FROM unstuck_steps
                 WHERE job = :job
                 ORDER BY name, ordinal
                 LIMIT :most OFFSET :skip) AS s) AS p
 WHERE p.upto - p.bytes < :room
 ORDER BY p.name, p.ordinal

-- name: steps_of
SELECT name, ordinal, run, token, at, duration_ms, result FROM unstuck_steps WHERE job = :job ORDER BY at, name, ordinal

-- name: steps_page
-- In the order they were finished, behind :skip of them: up to :most rows, and those of them before which there are less than :room bytes. They are
-- put in order by their keys alone, without their results.
SELECT p.name, p.ordinal, p.run, p.token, p.at, p.duration_ms, p.result, p.bytes
  FROM (SELECT s.*, {bytes s.result} AS bytes, SUM({bytes s.result}) OVER (ORDER BY s.at, s.name, s.ordinal) AS upto
          FROM (SELECT job, name, ordinal
                  FROM unstuck_steps
                 WHERE job = :job
                 ORDER BY at, name, ordinal
                 LIMIT :most OFFSET :skip) AS k
          JOIN unstuck_steps AS s ON s.job = k.job AND s.name = k.name AND s.ordinal = k.ordinal) AS p
 WHERE p.upto - p.bytes < :room
 ORDER BY p.at, p.name, p.ordinal

-- name: drop_steps
DELETE FROM unstuck_steps WHERE job = :job
