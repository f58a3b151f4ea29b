-- The running row is locked by this transaction. One that was kept before (its answer was lost), or is older than what is there, changes
-- nothing: serials grow within an attempt, tokens with attempts.
INSERT INTO unstuck_parts AS p (job, name, number, run, token, serial, at, value)
VALUES (:job, :name, :number, :run, :token, :serial, unstuck_now(), :value)
ON CONFLICT (job, name) DO UPDATE
   SET number = excluded.number, run = excluded.run, token = excluded.token, serial = excluded.serial, at = excluded.at, value = excluded.value
 WHERE (p.token, p.serial) < (excluded.token, excluded.serial)
