-- In which condition a server is, as its catalogs say. No table of ours is opened: one may be locked against everybody.

-- name: server_settings
-- As a session begins; what ours have set for themselves is not told.
SELECT name, reset_val AS value
  FROM pg_settings
 WHERE name IN ('autovacuum', 'default_transaction_isolation', 'fsync', 'full_page_writes', 'idle_in_transaction_session_timeout', 'max_connections',
                'synchronous_commit', 'synchronous_standby_names', 'track_counts', 'transaction_timeout')

-- name: server_stand
SELECT CAST(current_setting('server_version_num') AS INTEGER) AS version,
       (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS sessions,
       CAST(current_setting('max_connections') AS INTEGER) - CAST(current_setting('superuser_reserved_connections') AS INTEGER)
           - COALESCE(CAST(current_setting('reserved_connections', true) AS INTEGER), 0) AS most_sessions,
       inet_server_addr() IS NOT NULL AS is_remote,
       COALESCE((SELECT CAST(setting AS INTEGER) FROM pg_settings WHERE name = 'tcp_user_timeout'), 0) AS tcp_user_timeout,
       (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()) AS xid_age

-- name: table_stands
-- Sizes as the planner knows them: to measure one takes a lock on it.
SELECT c.relname AS name, s.n_live_tup AS live, s.n_dead_tup AS dead, CAST(c.relpages AS BIGINT) * CAST(current_setting('block_size') AS BIGINT) AS bytes,
       s.n_mod_since_analyze AS changed,
       CAST(EXTRACT(EPOCH FROM GREATEST(s.last_vacuum, s.last_autovacuum)) * 1000000 AS BIGINT) AS vacuumed_at,
       CAST(EXTRACT(EPOCH FROM GREATEST(s.last_analyze, s.last_autoanalyze)) * 1000000 AS BIGINT) AS analyzed_at,
       NOT EXISTS (SELECT 1 FROM unnest(c.reloptions) AS given (text) WHERE given.text ~ '^autovacuum_enabled=(false|off|no|0)$') AS is_autovacuumed
  FROM pg_class c
  JOIN pg_stat_all_tables s ON s.relid = c.oid
 WHERE c.relkind IN ('r', 'p') AND c.relname LIKE 'unstuck\_%'
   AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('unstuck_jobs'))
 ORDER BY s.n_dead_tup DESC

-- name: long_transactions
-- What keeps rows from being cleaned away that are dead to everybody else. Of other users' sessions a plain user sees less.
SELECT 'session' AS what, a.pid, a.application_name AS name, CAST(a.usename AS TEXT) AS who, a.state,
       CAST(EXTRACT(EPOCH FROM clock_timestamp() - a.xact_start) * 1000000 AS BIGINT) AS lasts
  FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
   AND a.xact_start <= clock_timestamp() - CAST(:longer AS BIGINT) * INTERVAL '1 microsecond'
 UNION ALL
SELECT 'prepared', NULL, p.gid, CAST(p.owner AS TEXT), 'prepared', CAST(EXTRACT(EPOCH FROM clock_timestamp() - p.prepared) * 1000000 AS BIGINT)
  FROM pg_prepared_xacts p
 WHERE p.database = current_database() AND p.prepared <= clock_timestamp() - CAST(:longer AS BIGINT) * INTERVAL '1 microsecond'
 UNION ALL
SELECT 'slot', NULL, CAST(r.slot_name AS TEXT), '', 'inactive', NULL
  FROM pg_replication_slots r
 WHERE NOT r.active
 ORDER BY 6 DESC NULLS LAST
 LIMIT 20

-- name: wall
SELECT unstuck_wall() AS wall

-- name: analyze
-- Those that change most and are joined most; one that is held is passed by.
ANALYZE (SKIP_LOCKED) unstuck_jobs, unstuck_ready, unstuck_running, unstuck_done, unstuck_timers, unstuck_line, unstuck_events, unstuck_routes,
        unstuck_targets, unstuck_workers, unstuck_workflows, unstuck_waits, unstuck_steps, unstuck_children, unstuck_dependencies, unstuck_keys,
        unstuck_tags, unstuck_feed, unstuck_news, unstuck_outputs, unstuck_progress, unstuck_inbox, unstuck_past_runs, unstuck_dead_letters
