SELECT job, token, claim, request, request_reason, started_at FROM unstuck_running WHERE worker = :worker
