DELETE FROM unstuck_stucks
 WHERE id IN (SELECT id FROM unstuck_stucks WHERE at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY at LIMIT :batch)
