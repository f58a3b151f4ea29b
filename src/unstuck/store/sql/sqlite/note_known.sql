UPDATE unstuck_workflows
   SET known_at = unstuck_now()
 WHERE (known_at IS NULL OR known_at < unstuck_now() - :every)
   AND EXISTS (SELECT 1
                 FROM unstuck_workers w, json_each(w.serves, '$.workflows') AS known
                WHERE w.ended_at IS NULL AND w.lease_until > unstuck_now() AND w.state IN ('active', 'draining')
                  AND w.code_version = unstuck_workflows.code_version AND known.value = unstuck_workflows.name)
