SELECT name, value, set_at, set_by FROM unstuck_settings ORDER BY name
