-- SKIP LOCKED: several workers take different entries, and nobody waits.
DELETE FROM unstuck_inbox
 WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT :batch FOR UPDATE SKIP LOCKED))
RETURNING seq, target, job
