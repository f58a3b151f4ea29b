-- Sorted as Python sorts, which a deploy does, and past whoever is at it: every janitor does this.
UPDATE unstuck_workflows
   SET known_at = unstuck_now()
 WHERE ctid = ANY (ARRAY(
       SELECT f.ctid
         FROM unstuck_workflows f
        WHERE (f.known_at IS NULL OR f.known_at < (SELECT unstuck_now()) - CAST(:every AS BIGINT))
          AND EXISTS (SELECT 1
                        FROM unstuck_workers w
                        JOIN LATERAL json_array_elements_text(CAST(w.serves AS json) -> 'workflows') AS known (name) ON TRUE
                       WHERE w.ended_at IS NULL AND w.lease_until > (SELECT unstuck_now()) AND w.state IN ('active', 'draining')
                         AND w.code_version = f.code_version AND known.name = f.name)
        ORDER BY f.name COLLATE "C", f.code_version COLLATE "C"
          FOR UPDATE OF f SKIP LOCKED))
