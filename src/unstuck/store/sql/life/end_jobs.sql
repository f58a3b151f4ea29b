INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result,
                          error_type, error_message, late)
SELECT job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result,
       error_type, error_message, late
  FROM {rows :rows AS r (
             job BIGINT, route BIGINT, run BIGINT, state TEXT, token BIGINT, event_count BIGINT, worker BIGINT, claimed_at
             BIGINT, finished_at BIGINT, duration_ms BIGINT, result TEXT, error_type TEXT, error_message TEXT, late
             SMALLINT)}
