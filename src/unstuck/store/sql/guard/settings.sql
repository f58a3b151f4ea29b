-- Runtime settings.

-- name: settings_set
SELECT name, value, set_at, set_by FROM unstuck_settings ORDER BY name

-- name: set_setting
INSERT INTO unstuck_settings (name, value, set_at, set_by)
VALUES (:name, :value, unstuck_now(), :by)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, set_at = excluded.set_at, set_by = excluded.set_by

-- name: drop_setting
DELETE FROM unstuck_settings WHERE name = :name
