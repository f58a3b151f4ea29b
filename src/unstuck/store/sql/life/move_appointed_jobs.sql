UPDATE unstuck_jobs AS j
   SET available_at = COALESCE((SELECT t.appointed + unstuck_ahead() FROM unstuck_timers t
                                 WHERE t.job = j.id AND t.kind = 'start' AND t.appointed IS NOT NULL), j.available_at),
       expires_at = COALESCE((SELECT t.appointed + unstuck_ahead() FROM unstuck_timers t
                               WHERE t.job = j.id AND t.kind = 'expire' AND t.appointed IS NOT NULL AND t.due_at = j.expires_at), j.expires_at)
 WHERE j.id {in :jobs BIGINT}
