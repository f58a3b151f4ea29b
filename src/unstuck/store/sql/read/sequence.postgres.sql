-- Only here: SQLite's ids are in the order of the commits already. See schema/postgres/0007_feed.sql.
SELECT unstuck_sequence(:most, :kept) AS taken
