SELECT to_regclass('unstuck_migrations') IS NOT NULL AS found
