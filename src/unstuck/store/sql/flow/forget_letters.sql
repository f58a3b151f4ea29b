-- SKIP LOCKED: one that is taken at this instant is not waited for.
DELETE FROM unstuck_letters
 WHERE id {among} SELECT id FROM unstuck_letters WHERE expires_at <= (SELECT unstuck_now())
                        ORDER BY expires_at LIMIT :batch {lock FOR UPDATE SKIP LOCKED}{end}
