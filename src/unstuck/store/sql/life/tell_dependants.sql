-- Somebody waits for the end of these: an entry in the inbox each.
INSERT INTO unstuck_inbox (job)
SELECT ended.job
  FROM {list :jobs AS ended (job BIGINT)}
 WHERE (SELECT 1 FROM unstuck_dependencies d WHERE d.on_job = ended.job LIMIT 1) = 1
