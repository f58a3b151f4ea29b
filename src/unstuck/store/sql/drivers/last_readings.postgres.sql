-- What the other workers of this boot saw last. Who began before :begun, by the BOOTTIME of both, is an elder: one that begins in leapt time knows
-- no better. A look at all of them, where the clock seems to have leapt.
SELECT beat_at, boot_at, boot_at - (beat_at - started_at) < CAST(:begun AS BIGINT) AS is_elder
  FROM unstuck_workers
 WHERE boot_id = :boot_id AND boot_at IS NOT NULL AND name <> :besides
 ORDER BY is_elder DESC, boot_at DESC
 LIMIT 10
