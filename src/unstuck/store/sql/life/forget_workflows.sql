-- Versions that no worker has had for so long, but never the last one of a name and tenant: the doors still check arguments by it.
DELETE FROM unstuck_workflows
 WHERE seen_at <= (SELECT unstuck_now() - :retention) AND COALESCE(known_at, 0) <= (SELECT unstuck_now() - :retention)
   AND (name, code_version, tenant) IN (
       SELECT w.name, w.code_version, w.tenant
         FROM unstuck_workflows w
        WHERE w.seen_at <= (SELECT unstuck_now() - :retention) AND COALESCE(w.known_at, 0) <= (SELECT unstuck_now() - :retention)
          AND EXISTS (SELECT 1 FROM unstuck_workflows later WHERE later.name = w.name AND later.tenant = w.tenant AND later.seen_at > w.seen_at)
        ORDER BY w.name, w.code_version, w.tenant
        LIMIT :batch OFFSET :past)
