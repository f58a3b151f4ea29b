INSERT INTO unstuck_tenants (name, weight, set_at, set_by)
VALUES (:name, :weight, unstuck_now(), :by)
ON CONFLICT (name) DO UPDATE
   SET weight = excluded.weight, set_at = excluded.set_at, set_by = excluded.set_by
RETURNING name, weight
