SELECT b.id AS entry, b.tenant, b.workflow, b.probe AS job, v.uid, v.state
  FROM unstuck_blacklist b
  LEFT JOIN unstuck_job_rows v ON v.number = b.probe
 WHERE b.removed_at IS NULL AND b.probe IS NOT NULL
