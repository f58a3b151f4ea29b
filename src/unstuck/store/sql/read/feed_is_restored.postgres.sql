-- Only here: see schema/postgres/0007_feed.sql.
SELECT pg_snapshot_xmax(pg_current_snapshot()) < since AS is_restored FROM unstuck_sequencer
