UPDATE unstuck_clock SET moved = :ahead
