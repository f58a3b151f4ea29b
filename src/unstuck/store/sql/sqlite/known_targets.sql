SELECT t.id FROM json_each(:targets) AS r CROSS JOIN unstuck_targets t ON t.id = r.value
