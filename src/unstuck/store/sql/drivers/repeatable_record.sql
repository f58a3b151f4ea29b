INSERT INTO unstuck_repeatables (name, checksum, applied_at)
VALUES (:name, :checksum, unstuck_now())
ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = excluded.applied_at
