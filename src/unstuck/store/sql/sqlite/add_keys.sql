-- Answers the keys that are ours now: new ones, and old ones whose day has passed and whose job has ended.
INSERT INTO unstuck_keys AS k (tenant, key, fingerprint, job, created_at, expires_at)
SELECT r.value ->> 'tenant', r.value ->> 'key', r.value ->> 'fingerprint', r.value ->> 'job',
       unstuck_now(), unstuck_now() + :life
  FROM json_each(:rows) AS r
 WHERE TRUE
ON CONFLICT (tenant, key) DO UPDATE
   SET fingerprint = excluded.fingerprint, job = excluded.job,
       created_at = excluded.created_at, expires_at = excluded.expires_at
 WHERE k.expires_at <= unstuck_now()
   AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                    WHERE j.uid = k.job AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
RETURNING tenant, key
