-- Not called `now`: it is read in order to be judged.
SELECT unstuck_now() AS reading, ahead, leaps FROM unstuck_clock
