-- One without marks is as good as new.
DELETE FROM unstuck_breakers
 WHERE (tenant, workflow) IN (
       SELECT b.tenant, b.workflow
         FROM unstuck_breakers b
        WHERE NOT EXISTS (SELECT 1 FROM unstuck_stucks s WHERE s.tenant = b.tenant AND s.workflow = b.workflow)
        ORDER BY b.tenant, b.workflow
        LIMIT :batch OFFSET :past)
