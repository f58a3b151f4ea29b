-- One without marks is as good as new. A settlement that locks it, or makes it anew, is not waited for and does not wait.
DELETE FROM unstuck_breakers
 WHERE ctid = ANY (ARRAY(
       SELECT b.ctid
         FROM unstuck_breakers b
        WHERE NOT EXISTS (SELECT 1 FROM unstuck_stucks s WHERE s.tenant = b.tenant AND s.workflow = b.workflow)
        ORDER BY b.tenant, b.workflow
        LIMIT :batch OFFSET :past
          FOR UPDATE SKIP LOCKED))
