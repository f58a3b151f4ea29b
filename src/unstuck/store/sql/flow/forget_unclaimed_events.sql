-- SKIP LOCKED: one that is taken at this instant is not waited for.
DELETE FROM unstuck_unclaimed_events
 WHERE id {among} SELECT id FROM unstuck_unclaimed_events WHERE expires_at <= (SELECT unstuck_now())
                        ORDER BY expires_at LIMIT :batch {lock FOR UPDATE SKIP LOCKED}{end}
