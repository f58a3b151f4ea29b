-- Waits for the claims that are under way, and keeps others out until this transaction ends: see unstuck_pass_guard. The last
-- lock that anybody takes.
SELECT pg_advisory_xact_lock(1970173813)
