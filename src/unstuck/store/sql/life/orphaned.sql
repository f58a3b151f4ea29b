-- A route on which nothing may be paused, and whose workflow no worker knows or has known for so long; who knew it last.
SELECT o.workflow, last.code_version, last.at, unstuck_now() AS now
  FROM unstuck_routes o
  LEFT JOIN (SELECT name, tenant, code_version, CASE WHEN known_at > seen_at THEN known_at ELSE seen_at END AS at
               FROM unstuck_workflows) AS last ON last.name = o.workflow AND last.tenant IN ('*', o.tenant)
 WHERE o.id = :route
   AND NOT EXISTS (SELECT 1 FROM unstuck_gates g WHERE g.route = o.id AND g.is_limit = 0)
   AND NOT EXISTS (SELECT 1
                     FROM unstuck_workers w
                    WHERE w.ended_at IS NULL AND w.lease_until > (SELECT unstuck_now()) AND w.state IN ('active', 'draining')
                      AND {holds w.serves workflows o.workflow} AND COALESCE({json w.serves} ->> 'tenant', o.tenant) = o.tenant)
   AND NOT EXISTS (SELECT 1
                     FROM unstuck_workflows recent
                    WHERE recent.name = o.workflow AND recent.tenant IN ('*', o.tenant)
                      AND CASE WHEN recent.known_at > recent.seen_at THEN recent.known_at ELSE recent.seen_at END
                          > (SELECT unstuck_now()) - CAST(:age AS BIGINT))
 ORDER BY last.at DESC NULLS LAST
 LIMIT 1
