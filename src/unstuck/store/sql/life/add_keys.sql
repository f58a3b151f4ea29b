-- Answers the keys that are ours now: new ones, and old ones whose time has passed and whose job has ended. The rows come
-- sorted, so that two submits of the same keys wait for each other in the same order.
INSERT INTO unstuck_keys AS k (tenant, key, fingerprint, job, created_at, expires_at)
SELECT r.tenant, r.key, r.fingerprint, r.job, clock.now, clock.now + :life
  FROM {rows :rows AS r (tenant TEXT, key TEXT, fingerprint TEXT, job TEXT)}
 CROSS JOIN (SELECT unstuck_now() AS now LIMIT 1) AS clock
 WHERE TRUE
ON CONFLICT (tenant, key) DO UPDATE
   SET fingerprint = excluded.fingerprint, job = excluded.job,
       created_at = excluded.created_at, expires_at = excluded.expires_at
 WHERE k.expires_at <= unstuck_now()
   AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                    WHERE j.uid = k.job AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
RETURNING tenant, key
