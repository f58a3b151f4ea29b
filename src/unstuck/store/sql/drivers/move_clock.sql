UPDATE unstuck_clock
   SET ahead = :ahead, leaps = leaps + 1, leap = :leap, leapt_at = unstuck_now() - :correction, noticed = :by
