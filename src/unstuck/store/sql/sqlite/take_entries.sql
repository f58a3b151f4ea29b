DELETE FROM unstuck_inbox WHERE seq IN (SELECT value FROM json_each(:entries)) RETURNING seq, target, job
