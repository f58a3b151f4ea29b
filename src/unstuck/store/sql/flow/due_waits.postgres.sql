-- Locks the jobs, not the timers: whoever moves a job at rest holds its jobs row. One that is busy keeps its timer, as does one whose
-- target is not among :targets. A target's head is as final as that lock makes it.
SELECT t.due_at, j.id AS number, j.id AS job, j.uid, j.state, j.route, j.target AS target_number, j.priority, j.policy, j.run, j.token, j.event_count, j.failures,
       j.losses, j.suspects, j.alone, j.started, CASE WHEN g.head = j.id THEN 1 ELSE 0 END AS is_head, unstuck_now() AS now
  FROM json_to_recordset(CAST(:timers AS json)) AS r (due_at BIGINT, job BIGINT)
 CROSS JOIN LATERAL (
       SELECT due_at, job FROM unstuck_timers WHERE kind = 'wait' AND due_at = r.due_at AND job = r.job LIMIT 1) AS t
 CROSS JOIN LATERAL (
       SELECT *
         FROM unstuck_jobs
        WHERE id = t.job AND (target IS NULL OR target = ANY (CAST(:targets AS BIGINT[])))
        LIMIT 1
          FOR NO KEY UPDATE SKIP LOCKED) AS j
  LEFT JOIN LATERAL (SELECT head FROM unstuck_targets WHERE id = j.target LIMIT 1) AS g ON TRUE
 ORDER BY t.due_at, t.job
