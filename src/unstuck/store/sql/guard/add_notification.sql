INSERT INTO unstuck_notifications (at, title, message, severity, link, tenant, workflow, count)
VALUES (unstuck_now(), :title, :message, :severity, :link, :tenant, :workflow, :count)
