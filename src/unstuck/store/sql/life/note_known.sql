-- Sorted as Python sorts, which a deploy does, and past whoever is at it: every janitor does this.
UPDATE unstuck_workflows
   SET known_at = unstuck_now()
 WHERE {row} {among}
       SELECT {row f}
         FROM unstuck_workflows f
        WHERE (f.known_at IS NULL OR f.known_at < (SELECT unstuck_now()) - CAST(:every AS BIGINT))
          AND EXISTS (SELECT 1
                        FROM unstuck_workers w
                       WHERE w.ended_at IS NULL AND w.lease_until > (SELECT unstuck_now()) AND w.state IN ('active', 'draining')
                         AND w.code_version = f.code_version AND {holds w.serves workflows f.name}
                         AND COALESCE({json w.serves} ->> 'tenant', '*') = f.tenant)
        ORDER BY {binary f.name}, {binary f.code_version}, {binary f.tenant}
          {lock FOR UPDATE OF f SKIP LOCKED}
       {end}
