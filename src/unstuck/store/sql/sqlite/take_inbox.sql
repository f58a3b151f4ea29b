DELETE FROM unstuck_inbox
 WHERE seq IN (SELECT seq FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT :batch)
RETURNING seq, target, job
