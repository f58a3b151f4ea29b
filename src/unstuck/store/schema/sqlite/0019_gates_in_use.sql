-- Whether anything is paused, blacklisted or limited at all: asked once per look and per claim, whatever there is.
CREATE VIEW unstuck_gates_in_use AS
SELECT EXISTS (SELECT 1 FROM unstuck_pauses WHERE kind <> 'target')
       OR (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL AS has_pauses,
       EXISTS (SELECT 1 FROM unstuck_limits WHERE concurrency IS NOT NULL OR rate IS NOT NULL) AS has_limits;
