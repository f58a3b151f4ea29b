-- With one writer there is nothing to lock.
SELECT value AS id FROM json_each(:targets)
