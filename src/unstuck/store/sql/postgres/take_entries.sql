-- By their numbers; what somebody else works off at this instant is left to him.
DELETE FROM unstuck_inbox
 WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM unstuck_inbox WHERE seq = ANY (CAST(:entries AS BIGINT[])) ORDER BY seq FOR UPDATE SKIP LOCKED))
RETURNING seq, target, job
