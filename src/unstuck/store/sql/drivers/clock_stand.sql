SELECT ahead, leaps, leap, leapt_at, noticed FROM unstuck_clock
