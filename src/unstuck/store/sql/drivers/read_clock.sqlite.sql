SELECT ahead, boot, anchor, COALESCE((SELECT MAX(beat_at) FROM unstuck_workers), 0) AS last_beat FROM unstuck_clock
