SELECT unstuck_keep_time() AS ahead
