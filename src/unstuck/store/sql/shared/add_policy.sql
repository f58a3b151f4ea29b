INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us)
VALUES (:digest, :body, :timeout_us, :grace_us)
ON CONFLICT (digest) DO NOTHING
