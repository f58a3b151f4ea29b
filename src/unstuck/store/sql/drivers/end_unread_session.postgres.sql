-- Still the same statement, and still nobody takes its answer.
SELECT pg_terminate_backend(pid) AS ended
  FROM pg_stat_activity
 WHERE pid = :pid AND datname = current_database() AND usename = current_user
   AND state = 'active' AND wait_event_type = 'Client' AND wait_event = 'ClientWrite'
   AND starts_with(query, '/* unstuck */') AND CAST(EXTRACT(EPOCH FROM query_start) * 1000000 AS BIGINT) = :asked_at
