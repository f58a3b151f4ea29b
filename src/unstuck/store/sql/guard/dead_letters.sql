-- Dead letters: what did not run, until somebody looks at it or its time is over.

-- name: add_dead_letters
-- One of each run: a repeat adds nothing.
INSERT INTO unstuck_dead_letters (job, run, tenant, queue, workflow, reason, message, signature, created_at, expires_at)
SELECT r.job, r.run, r.tenant, r.queue, r.workflow, r.reason, r.message, r.signature, unstuck_now(), unstuck_now() + CAST(:life AS BIGINT)
  FROM {rows :rows AS r (job BIGINT, run BIGINT, tenant TEXT, queue TEXT, workflow TEXT, reason TEXT, message TEXT, signature TEXT)}
 WHERE TRUE
ON CONFLICT (job, run) DO NOTHING
