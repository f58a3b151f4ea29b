-- Looks again under the lock: a pause may have been prolonged meanwhile.
DELETE FROM unstuck_pauses
 WHERE kind = 'target' AND until_at <= (SELECT unstuck_now())
   AND (name, tenant) IN (SELECT t.name, t.tenant FROM {list :targets AS r (id BIGINT)} {by_key unstuck_targets AS t ON t.id = r.id})
