-- SKIP LOCKED: who ends stays at this instant takes the timer himself, and a claim waits for nobody.
DELETE FROM unstuck_timers {free unstuck_timers :rows (due_at BIGINT, job BIGINT) WHERE kind = 'expire'}
RETURNING job
