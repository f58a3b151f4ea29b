UPDATE unstuck_clock SET boot = :boot, anchor = :anchor, ahead = :ahead
