SELECT one FROM unstuck_clock FOR UPDATE
