-- Partial results.

-- name: parts_so_far
SELECT COALESCE(MAX(number), 0) AS last, COUNT(NULLIF(name, '')) AS names FROM unstuck_parts WHERE job = :job

-- name: has_part
SELECT 1 AS found FROM unstuck_parts WHERE job = :job AND name = :name

-- name: keep_part
-- The running row is locked by this transaction. One that was kept before (its answer was lost), or is older than what is there, changes
-- nothing: serials grow within an attempt, tokens with attempts.
INSERT INTO unstuck_parts AS p (job, name, number, run, token, serial, at, value)
VALUES (:job, :name, :number, :run, :token, :serial, unstuck_now(), :value)
ON CONFLICT (job, name) DO UPDATE
   SET number = excluded.number, run = excluded.run, token = excluded.token, serial = excluded.serial, at = excluded.at, value = excluded.value
 WHERE (p.token, p.serial) < (excluded.token, excluded.serial)

-- name: parts_of
SELECT name, value, number, run, token, at
  FROM unstuck_parts
 WHERE job = :job AND number > :after AND name <> ''
 ORDER BY number
 LIMIT :most

-- name: blank_parts
UPDATE unstuck_parts SET name = '', value = 'null' WHERE job = :job

-- name: drop_parts
-- All but the one that keeps the number.
DELETE FROM unstuck_parts WHERE job = :job AND number < (SELECT MAX(number) FROM unstuck_parts WHERE job = :job)
