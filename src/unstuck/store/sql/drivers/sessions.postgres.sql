-- Sessions whose answers nobody reads.

-- name: unread_sessions
-- Sessions of our role that have been sending the answer of a statement of ours (each begins with our mark) since so long ago that
-- whoever asked has given up, and that wait for somebody to take it. Locks they hold stay held: no timeout ends a blocked send.
SELECT pid, CAST(EXTRACT(EPOCH FROM query_start) * 1000000 AS BIGINT) AS asked_at, application_name AS application
  FROM pg_stat_activity
 WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
   AND state = 'active' AND wait_event_type = 'Client' AND wait_event = 'ClientWrite'
   AND starts_with(query, '/* unstuck */')
   AND query_start < clock_timestamp() - CAST(:unread_for AS BIGINT) * INTERVAL '1 microsecond'
 ORDER BY pid

-- name: end_unread_session
-- Still the same statement, and still nobody takes its answer.
SELECT pg_terminate_backend(pid) AS ended
  FROM pg_stat_activity
 WHERE pid = :pid AND datname = current_database() AND usename = current_user
   AND state = 'active' AND wait_event_type = 'Client' AND wait_event = 'ClientWrite'
   AND starts_with(query, '/* unstuck */') AND CAST(EXTRACT(EPOCH FROM query_start) * 1000000 AS BIGINT) = :asked_at
