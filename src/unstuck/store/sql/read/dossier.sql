-- One job as its readers see it, its last :last events, and what else there is to read of it: most jobs have nothing more,
-- and whoever looks need not ask.
SELECT v.*, unstuck_now() AS now,
       (SELECT {json_array}({json_object}('number', few.number, 'kind', few.kind, 'at', few.at, 'run', few.run, 'token', few.token,
                                          'data', few.data))
          FROM (SELECT e.number, e.kind, e.at, e.run, e.token, e.data
                  FROM unstuck_events e
                 WHERE e.job = v.number AND e.number > {greatest}(0, v.event_count - CAST(:last AS BIGINT))
                 ORDER BY e.number
                 LIMIT :most) AS few) AS events,
       (SELECT p.value FROM unstuck_progress p WHERE p.job = v.number) AS progress,
       (SELECT COUNT(NULLIF(p.name, '')) FROM unstuck_parts p WHERE p.job = v.number) AS parts,
       (SELECT p.uid FROM unstuck_children c JOIN unstuck_jobs p ON p.id = c.parent WHERE c.child = v.number) AS parent,
       (SELECT c.payer FROM unstuck_children c WHERE c.child = v.number) AS payer,
       EXISTS (SELECT 1 FROM unstuck_children c WHERE c.parent = v.number) AS has_children,
       EXISTS (SELECT 1 FROM unstuck_steps s WHERE s.job = v.number) AS has_steps,
       EXISTS (SELECT 1 FROM unstuck_waits w WHERE w.job = v.number) AS has_waits,
       EXISTS (SELECT 1 FROM unstuck_usage u WHERE u.job = v.number) AS has_usage,
       (SELECT l.reason FROM unstuck_dead_letters l WHERE l.job = v.number ORDER BY l.run DESC LIMIT 1) AS dead_letter,
       EXISTS (SELECT 1 FROM unstuck_workflows f WHERE f.name = v.workflow AND f.tenant IN ('*', v.tenant) AND f.redact <> '[]') AS is_redacted
  FROM unstuck_job_rows v
 WHERE v.uid = :uid AND v.tenant = :tenant
