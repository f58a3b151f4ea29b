-- Locks the jobs first, as a resume does; a job that somebody is working on stays until the next time. One that blocks a target
-- or that another waits for stays as long as it does. A child stays as long as its parent's row: a spawn that is repeated must
-- find it, with its result, and not do its work twice. A scalar subquery: for each row by the key, never by a join of all.
SELECT d.job
  FROM unstuck_done d
  JOIN unstuck_jobs j ON j.id = d.job
 WHERE d.job {in :jobs BIGINT}
   AND d.finished_at <= (SELECT unstuck_now() - :retention)
   AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks h WHERE h.job = d.job)
   AND NOT EXISTS (SELECT 1 FROM unstuck_targets t WHERE t.id = j.target AND t.head = j.id)
   AND NOT EXISTS (SELECT 1 FROM unstuck_dependencies w WHERE w.on_job = d.job)
   AND (SELECT p.id FROM unstuck_children c JOIN unstuck_jobs p ON p.id = c.parent WHERE c.child = d.job) IS NULL
   {lock FOR UPDATE OF j, d SKIP LOCKED}
