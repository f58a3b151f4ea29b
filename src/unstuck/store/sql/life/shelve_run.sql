INSERT INTO unstuck_past_runs (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result,
                               error_type, error_message, late)
SELECT job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result,
       error_type, error_message, late
  FROM unstuck_done
 WHERE job = :job
