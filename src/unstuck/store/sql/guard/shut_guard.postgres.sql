-- Waits for the claims that are under way, and keeps others out until this transaction ends: see unstuck_pass_guard. The last
-- lock that anybody takes, and the last that its transaction does: behind it nobody can claim.
SELECT pg_advisory_xact_lock(1970173813)
