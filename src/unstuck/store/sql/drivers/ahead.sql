SELECT unstuck_ahead() AS ahead
