-- Of all tenants: an id is one job's.
SELECT v.*, unstuck_now() AS now,
       EXISTS (SELECT 1 FROM unstuck_workflows f WHERE f.name = v.workflow AND f.tenant IN ('*', v.tenant) AND f.redact <> '[]') AS is_redacted
  FROM unstuck_job_rows v
 WHERE v.uid {in :uids TEXT}
