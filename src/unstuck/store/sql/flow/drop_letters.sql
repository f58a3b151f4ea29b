-- Sent to earlier runs: the next one must not take them for its own.
DELETE FROM unstuck_letters WHERE tenant = :tenant AND address = :address AND run < :run
