SELECT {postgres to_regclass('unstuck_migrations') IS NOT NULL}
       {sqlite EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'unstuck_migrations')} AS found
