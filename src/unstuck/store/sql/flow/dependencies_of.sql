SELECT d.job, d.on_job, o.uid, e.state, e.error_type, a.job IS NOT NULL AS is_running
  FROM unstuck_dependencies d
  LEFT JOIN unstuck_jobs o ON o.id = d.on_job
  LEFT JOIN unstuck_done e ON e.job = d.on_job
  LEFT JOIN unstuck_running a ON a.job = d.on_job
 WHERE d.job {in :jobs BIGINT}
 ORDER BY d.job, d.on_job
