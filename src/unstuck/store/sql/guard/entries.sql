-- Entries of the blacklist, and the jobs that they hold.

-- name: guard_in_use
SELECT (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_entries,
       EXISTS (SELECT 1 FROM unstuck_blacklist_held) AS has_held

-- name: active_entries
SELECT * FROM unstuck_blacklist
 WHERE removed_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
 ORDER BY workflow, tenant

-- name: entries_against
SELECT * FROM unstuck_blacklist WHERE removed_at IS NULL AND workflow {in :workflows TEXT} ORDER BY id

-- name: blacklist_history
SELECT * FROM unstuck_blacklist
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: add_entry
INSERT INTO unstuck_blacklist (tenant, workflow, reason, blacklisted_at, blacklisted_by, stuck_count)
VALUES (:tenant, :workflow, :reason, unstuck_now(), :by, :stuck_count)
ON CONFLICT (workflow, tenant) WHERE removed_at IS NULL DO NOTHING
RETURNING *

-- name: keep_entries
-- Kept from being removed until this transaction ends.
SELECT * FROM unstuck_blacklist WHERE id {in :entries BIGINT} AND removed_at IS NULL ORDER BY id {lock FOR SHARE}

-- name: remove_entries
-- Of one tenant ('*' is one here), or (NULL) of all; or this one alone.
UPDATE unstuck_blacklist
   SET removed_at = unstuck_now(), removed_by = :by, probe = NULL
 WHERE workflow = :workflow AND removed_at IS NULL
   AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:entry AS BIGINT) IS NULL OR id = CAST(:entry AS BIGINT))
RETURNING *

-- name: renew_entry
-- The job that was let through got stuck again.
UPDATE unstuck_blacklist SET probe = NULL, renewed_at = unstuck_now() WHERE probe = :job AND removed_at IS NULL

-- name: probes
SELECT b.id AS entry, b.tenant, b.workflow, b.probe AS job, v.uid, v.state
  FROM unstuck_blacklist b
  LEFT JOIN unstuck_job_rows v ON v.number = b.probe
 WHERE b.removed_at IS NULL AND b.probe IS NOT NULL

-- name: let_probe_through
UPDATE unstuck_blacklist SET probe = :job WHERE id = :entry AND removed_at IS NULL AND probe IS NULL

-- name: end_probe
UPDATE unstuck_blacklist SET probe = NULL WHERE id = :entry AND probe = :job AND removed_at IS NULL

-- name: first_held
SELECT job FROM unstuck_blacklist_held WHERE entry = :entry ORDER BY job LIMIT 1

-- name: drop_held
DELETE FROM unstuck_blacklist_held {matching :rows (entry BIGINT, job BIGINT)}
