SELECT kind, name, tenant, max_queued
  FROM unstuck_limits
 WHERE max_queued IS NOT NULL
   AND ((kind = 'tenant' AND name IN (:tenant, '*')) OR (kind = 'queue' AND name = :queue AND tenant IN (:tenant, '*')))
