SELECT name, setting
  FROM pg_settings
 WHERE name IN ('application_name', 'client_connection_check_interval', 'default_transaction_isolation',
                'idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout', 'synchronous_commit')
