-- Locks the jobs, not the timers: whoever moves a job at rest holds its jobs row. One that is busy keeps its timer, as does one whose
-- target is not among :targets. A target's head is as final as that lock makes it.
SELECT t.due_at, j.id AS number, j.id AS job, j.uid, j.state, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.event_count, j.failures,
       j.losses, j.suspects, j.alone, j.started, CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM {rows :timers AS r (due_at BIGINT, job BIGINT)}
  {by_key unstuck_timers AS t ON t.kind = 'wait' AND t.due_at = r.due_at AND t.job = r.job}
  {by_key unstuck_jobs AS j ON j.id = t.job AND (j.target IS NULL OR j.target {in :targets BIGINT})
          FOR NO KEY UPDATE SKIP LOCKED}
  {by_key_or_null unstuck_targets AS g ON g.id = j.target}
 ORDER BY t.due_at, t.job
