INSERT INTO unstuck_workflows (name, code_version, queue, policy, schema, target, limit_key, doc, registered_at, seen_at)
VALUES (:name, :code_version, :queue, :policy, :schema, :target, :limit_key, :doc, unstuck_now(), unstuck_now())
ON CONFLICT (name, code_version) DO UPDATE
   SET queue = excluded.queue, policy = excluded.policy, schema = excluded.schema, target = excluded.target,
       limit_key = excluded.limit_key, doc = excluded.doc, seen_at = excluded.seen_at
