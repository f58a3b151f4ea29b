-- Signed jobs: what a signature is held against, and the keys that must not start anything any more.

-- name: signed_facts
-- Of the open attempts of one claim those that carry a signature, and what it is held against beside what the claim has answered. The jobs
-- themselves were read by the claim: what is verified is what runs. target: NULL also of one that is another tenant's. is_first: no claim of its run
-- came before this one; NULL, and not looked for, where no key is revoked. clock: as signers read it; the engine's where that is ahead of it:
-- what was due does not become too early because the host's clock was set back. What is too long to be an envelope is not read; bytes, because
-- SQLite keeps any.
SELECT r.job, j.tenant, j.queue, j.workflow, j.priority, j.target IS NOT NULL AS has_target,
       CASE WHEN t.tenant = j.tenant THEN t.name END AS target, j.made_by,
       CASE WHEN EXISTS (SELECT 1 FROM unstuck_revoked_signers)
            THEN NOT EXISTS (SELECT 1 FROM unstuck_events e
                              WHERE e.job = r.job AND e.run = r.run AND e.token < r.token AND e.kind = 'claimed') END AS is_first,
       CASE WHEN {bytes j.signature} <= CAST(:longest AS BIGINT) THEN {postgres j.signature}{sqlite CAST(j.signature AS BLOB)} ELSE '' END AS signature,
       (SELECT unstuck_now() - CASE WHEN unstuck_ahead() < 0 THEN unstuck_ahead() ELSE 0 END) AS clock
  FROM unstuck_running r
  {by_key unstuck_jobs AS j ON j.id = r.job}
  {by_key_or_null unstuck_targets AS t ON t.id = j.target}
 WHERE r.worker = :worker AND r.claim = :claim AND j.signature IS NOT NULL

-- name: refused_jobs
SELECT id, uid, tenant, queue, workflow, CASE WHEN {bytes signature} <= CAST(:longest AS BIGINT) THEN {postgres signature}{sqlite CAST(signature AS BLOB)} END AS signature
  FROM unstuck_jobs
 WHERE id {in :jobs BIGINT}

-- name: revoke_signer
-- The first word about a key is kept.
INSERT INTO unstuck_revoked_signers (key, revoked_at, revoked_by, reason)
VALUES (:key, unstuck_now(), :by, :reason)
ON CONFLICT (key) DO NOTHING

-- name: unrevoke_signer
DELETE FROM unstuck_revoked_signers WHERE key = :key

-- name: revoked_signer
SELECT key, revoked_at, revoked_by, reason FROM unstuck_revoked_signers WHERE key = :key

-- name: revoked_signers
SELECT key, revoked_at, revoked_by, reason FROM unstuck_revoked_signers ORDER BY revoked_at DESC, key
