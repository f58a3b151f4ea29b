-- SKIP LOCKED: several workers take different entries, and nobody waits.
DELETE FROM unstuck_inbox
 WHERE seq {among} SELECT seq FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT :batch {lock FOR UPDATE SKIP LOCKED} {end}
RETURNING seq, target, job
