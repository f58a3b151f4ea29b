-- Sent to earlier runs: the next one must not take them for its own.
DELETE FROM unstuck_unclaimed_events WHERE tenant = :tenant AND address = :address AND run < :run
