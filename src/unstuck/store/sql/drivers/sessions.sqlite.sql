-- A file has no sessions that anybody could name.

-- name: unread_sessions
SELECT NULL AS pid, NULL AS asked_at, NULL AS application WHERE FALSE

-- name: lock_holders
SELECT NULL AS pid WHERE FALSE
