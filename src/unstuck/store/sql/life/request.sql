-- A drain never convicts anybody, so it leaves overdue_at alone; any other request starts the grace, unless an earlier limit stands
-- (there is none, NULL, before the handler began).
UPDATE unstuck_running
   SET request = :kind, requested_at = unstuck_now(), request_reason = :reason, request_by = :by, event_count = event_count + 1,
       overdue_at = CASE
           WHEN :kind = 'drain' THEN overdue_at
           WHEN overdue_at < unstuck_now() + (SELECT grace_us FROM unstuck_policies p WHERE p.id = policy)
           THEN overdue_at
           ELSE unstuck_now() + (SELECT grace_us FROM unstuck_policies p WHERE p.id = policy)
       END
 WHERE job = :job
