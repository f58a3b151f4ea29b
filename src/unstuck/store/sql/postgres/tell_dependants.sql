-- Somebody waits for the end of these: an entry in the inbox each.
INSERT INTO unstuck_inbox (job)
SELECT ended.job
  FROM unnest(CAST(:jobs AS BIGINT[])) AS ended (job)
 WHERE (SELECT 1 FROM unstuck_dependencies d WHERE d.on_job = ended.job LIMIT 1) = 1
