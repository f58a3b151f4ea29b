-- LATERAL ... LIMIT 1: one probe per name, whatever the statistics say of a table that has just grown. The comparison and the order name the
-- one index that can serve them: with equalities alone the planner may walk another, on which thousands of routes look alike.
SELECT d.id, d.named_at, d.tenant, d.queue, d.workflow, d.limit_key
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, queue TEXT, workflow TEXT, limit_key TEXT)
 CROSS JOIN LATERAL (
       SELECT o.id, o.named_at, o.tenant, o.queue, o.workflow, o.limit_key
         FROM unstuck_routes AS o
        WHERE (o.tenant, o.queue, o.workflow, o.limit_key) >= (r.tenant, r.queue, r.workflow, r.limit_key)
        ORDER BY o.tenant, o.queue, o.workflow, o.limit_key
        LIMIT 1) AS d
 WHERE d.tenant = r.tenant AND d.queue = r.queue AND d.workflow = r.workflow AND d.limit_key = r.limit_key
