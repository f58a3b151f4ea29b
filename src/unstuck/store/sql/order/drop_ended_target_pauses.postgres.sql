-- Looks again under the lock: a pause may have been prolonged meanwhile.
DELETE FROM unstuck_pauses p
 USING unstuck_targets t
 WHERE t.id = ANY (CAST(:targets AS BIGINT[])) AND p.kind = 'target' AND p.name = t.name AND p.tenant = t.tenant
   AND p.until_at <= (SELECT unstuck_now())
