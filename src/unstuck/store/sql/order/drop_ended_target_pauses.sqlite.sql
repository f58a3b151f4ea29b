DELETE FROM unstuck_pauses
 WHERE kind = 'target' AND until_at <= unstuck_now()
   AND (name, tenant) IN (SELECT t.name, t.tenant FROM json_each(:targets) AS r CROSS JOIN unstuck_targets t ON t.id = r.value)
