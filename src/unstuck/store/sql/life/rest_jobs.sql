UPDATE unstuck_jobs AS j
   SET state = r.state, run = r.run, token = r.token, event_count = r.event_count, failures = r.failures, losses = r.losses, suspects = r.suspects,
       alone = r.alone, started = r.started, available_at = COALESCE(r.available_at, j.available_at), expires_at = r.expires_at,
       error_type = r.error_type, error_message = r.error_message, span = COALESCE(r.span, j.span)
  FROM {rows :rows AS r (
             job BIGINT, state TEXT, run BIGINT, token BIGINT, event_count BIGINT, failures INTEGER, losses INTEGER, suspects
             INTEGER, alone SMALLINT, started SMALLINT, available_at BIGINT, expires_at BIGINT, error_type TEXT,
             error_message TEXT, span TEXT)}
 WHERE j.id = r.job
