-- The rows come sorted, as those of add_routes do.
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us, workflow, said)
SELECT digest, body, timeout_us, grace_us, workflow, said
  FROM {rows :rows AS r (digest TEXT, body TEXT, timeout_us BIGINT, grace_us BIGINT, workflow TEXT, said TEXT)}
 WHERE TRUE
ON CONFLICT (digest) DO NOTHING
