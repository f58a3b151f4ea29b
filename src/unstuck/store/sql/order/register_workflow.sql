-- Above every other, whatever the clock says: a submit notices by the newest that it must look again.
INSERT INTO unstuck_workflows (name, code_version, queue, policy, max_timeout, schema, target, limit_key, doc, registered_at, seen_at)
SELECT :name, :code_version, :queue, :policy, :max_timeout, :schema, :target, :limit_key, :doc, unstuck_now(),
       (SELECT CASE WHEN MAX(seen_at) >= unstuck_now() THEN MAX(seen_at) + 1 ELSE unstuck_now() END FROM unstuck_workflows)
 WHERE TRUE
ON CONFLICT (name, code_version) DO UPDATE
   SET queue = excluded.queue, policy = excluded.policy, max_timeout = excluded.max_timeout, schema = excluded.schema,
       target = excluded.target, limit_key = excluded.limit_key, doc = excluded.doc, seen_at = excluded.seen_at
