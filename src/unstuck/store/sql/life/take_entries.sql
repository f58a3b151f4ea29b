-- By their numbers; what somebody else works off at this instant is left to him.
DELETE FROM unstuck_inbox
 WHERE seq {among} SELECT seq FROM unstuck_inbox WHERE seq {in :entries BIGINT} ORDER BY seq {lock FOR UPDATE SKIP LOCKED} {end}
RETURNING seq, target, job
