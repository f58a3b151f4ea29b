-- A drain never convicts anybody, so it leaves overdue_at alone; any other request starts the grace, unless an earlier limit stands
-- (there is none, NULL, before the handler began). Now is not before the worker's last beat: a command that comes in the moment in which
-- the clock leaps back would write a grace that is long over once that is mended, and the backstop would convict by it.
UPDATE unstuck_running
   SET request = :kind, requested_at = unstuck_now(), request_reason = :reason, request_by = :by, event_count = event_count + 1,
       overdue_at = CASE
           WHEN :kind = 'drain' THEN overdue_at
           ELSE (SELECT CASE WHEN unstuck_running.overdue_at < grace.until THEN unstuck_running.overdue_at ELSE grace.until END
                   FROM (SELECT p.grace_us + COALESCE((SELECT w.beat_at FROM unstuck_workers w
                                                        WHERE w.id = unstuck_running.worker AND w.beat_at > unstuck_now()),
                                                      unstuck_now()) AS until
                           FROM unstuck_policies p
                          WHERE p.id = unstuck_running.policy) AS grace)
       END
 WHERE job = :job
