DELETE FROM unstuck_audit
 WHERE id IN (SELECT id FROM unstuck_audit WHERE at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY at LIMIT :batch)
