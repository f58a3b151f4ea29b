-- Whether it was still in force is decided by the caller: SQLite 3.40 takes `until_at IS NULL` for false in a RETURNING clause.
DELETE FROM unstuck_pauses
 WHERE kind = :kind AND name = :name AND tenant = :tenant
RETURNING until_at, unstuck_now() AS now
