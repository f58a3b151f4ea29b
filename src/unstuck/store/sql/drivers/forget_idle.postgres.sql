DELETE FROM unstuck_idle WHERE listener = :listener
