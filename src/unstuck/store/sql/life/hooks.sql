-- Hooks: other systems' calls that start a workflow, and what was done about each.

-- name: hook
SELECT h.*, unstuck_now() AS now FROM unstuck_hooks h WHERE h.tenant = :tenant AND (h.name = :name OR h.uid = :name) ORDER BY h.name <> :name LIMIT 1

-- name: lock_hook
SELECT h.*, unstuck_now() AS now FROM unstuck_hooks h WHERE h.id = :number {lock FOR UPDATE}

-- name: hooks
SELECT h.*, unstuck_now() AS now
  FROM unstuck_hooks h
 WHERE (CAST(:tenant AS TEXT) IS NULL OR h.tenant = CAST(:tenant AS TEXT)) AND h.id > :after
 ORDER BY h.id
 LIMIT :most

-- name: hooks_stamp
-- Another one after every change of any of them.
SELECT COUNT(*) AS hooks, COALESCE(MAX(changed_at), 0) AS changed_at, CAST(COALESCE(SUM(version), 0) AS BIGINT) AS versions FROM unstuck_hooks

-- name: count_hooks
SELECT COUNT(*) AS hooks FROM unstuck_hooks WHERE tenant = :tenant

-- name: clear_hooks
-- Those whose secrets stand in clear text.
SELECT COUNT(*) AS hooks, MIN(name) AS first FROM unstuck_hooks WHERE is_sealed = 0 AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))

-- name: add_hook
INSERT INTO unstuck_hooks (uid, tenant, name, workflow, body, secrets, is_sealed, created_at, created_by, changed_at, changed_by)
SELECT :uid, :tenant, :name, :workflow, :body, :secrets, :is_sealed, now.at, :by, now.at, :by
  FROM (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
ON CONFLICT DO NOTHING
RETURNING id

-- name: change_hook
UPDATE unstuck_hooks
   SET workflow = :workflow, body = :body, secrets = :secrets, is_sealed = :is_sealed, version = version + 1, changed_at = unstuck_now(), changed_by = :by
 WHERE id = :number

-- name: reseal_hook
-- The same secrets, stored by another key: whoever has opened them need not look again.
UPDATE unstuck_hooks SET secrets = :secrets, is_sealed = :is_sealed WHERE id = :number

-- name: pause_hook
UPDATE unstuck_hooks
   SET paused_at = unstuck_now(), paused_by = :by, pause_reason = CAST(:reason AS TEXT), version = version + 1, changed_at = unstuck_now(), changed_by = :by
 WHERE id = :number

-- name: unpause_hook
UPDATE unstuck_hooks
   SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, version = version + 1, changed_at = unstuck_now(), changed_by = :by
 WHERE id = :number

-- name: delete_hook
DELETE FROM unstuck_hooks WHERE id = :number

-- name: accept_hook_delivery
-- Nothing, if the hook is not as it was seen, or the delivery came before. Whoever brings the same one at this moment is waited for.
INSERT INTO unstuck_hook_deliveries (hook, key, at, last_at, outcome, status, job, address, size, version)
SELECT h.id, :key, unstuck_now(), unstuck_now(), 'accepted', 202, :job, CAST(:address AS TEXT), CAST(:size AS BIGINT), h.version
  FROM unstuck_hooks h
 WHERE h.id = :hook AND h.version = :version AND h.paused_at IS NULL
ON CONFLICT (hook, key) WHERE outcome = 'accepted' DO NOTHING
RETURNING id

-- name: repeat_hook_delivery
UPDATE unstuck_hook_deliveries
   SET calls = calls + 1, last_at = unstuck_now()
 WHERE hook = :hook AND key = :key AND outcome = 'accepted'

-- name: known_hook_delivery
SELECT * FROM unstuck_hook_deliveries WHERE hook = :hook AND key = :key AND outcome = 'accepted'

-- name: refuse_hook_delivery
INSERT INTO unstuck_hook_deliveries (hook, key, at, last_at, outcome, problem, reason, status, address, size, calls, version)
SELECT h.id, CAST(:key AS TEXT), unstuck_now(), unstuck_now(), 'refused', :problem, :reason, :status, CAST(:address AS TEXT), CAST(:size AS BIGINT), :calls,
       h.version
  FROM unstuck_hooks h
 WHERE h.id = :hook

-- name: hook_delivery
SELECT * FROM unstuck_hook_deliveries WHERE id = :number

-- name: hook_deliveries
SELECT *
  FROM unstuck_hook_deliveries
 WHERE hook = :hook AND id < :before AND (CAST(:outcome AS TEXT) IS NULL OR outcome = CAST(:outcome AS TEXT))
 ORDER BY id DESC
 LIMIT :most

-- name: forget_hook_deliveries
DELETE FROM unstuck_hook_deliveries
 WHERE id {among}
       SELECT d.id FROM unstuck_hook_deliveries d
        WHERE d.at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT)
        ORDER BY d.at, d.id LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}
