DELETE FROM unstuck_letters
 WHERE id IN (SELECT id FROM unstuck_letters WHERE expires_at <= unstuck_now() ORDER BY expires_at LIMIT :batch)
