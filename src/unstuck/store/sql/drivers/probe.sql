-- Touches no row, yet needs what every write needs: a locked or read-only database fails here.
UPDATE unstuck_workers SET reason = reason WHERE id = -1
