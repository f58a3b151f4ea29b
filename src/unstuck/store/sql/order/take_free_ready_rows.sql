-- One that somebody is about to claim is left to him.
DELETE FROM unstuck_ready {free unstuck_ready :rows (route BIGINT, rank BIGINT, job BIGINT)}
RETURNING job
