SELECT unstuck_now() AS now
