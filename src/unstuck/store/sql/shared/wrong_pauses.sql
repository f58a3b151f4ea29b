SELECT 1 FROM unstuck_pauses WHERE until_at <> appointed + (SELECT unstuck_ahead()) LIMIT 1
