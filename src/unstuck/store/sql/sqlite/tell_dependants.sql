-- Somebody waits for the end of these: an entry in the inbox each.
INSERT INTO unstuck_inbox (job)
SELECT r.value
  FROM json_each(:jobs) AS r
 WHERE EXISTS (SELECT 1 FROM unstuck_dependencies d WHERE d.on_job = r.value)
