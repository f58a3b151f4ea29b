-- The rows come sorted, as those of add_routes do.
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us)
SELECT digest, body, timeout_us, grace_us
  FROM json_to_recordset(CAST(:rows AS json)) AS r (digest TEXT, body TEXT, timeout_us BIGINT, grace_us BIGINT)
ON CONFLICT (digest) DO NOTHING
