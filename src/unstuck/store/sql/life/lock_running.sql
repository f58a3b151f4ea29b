SELECT job, token, claim, worker, run, event_count, request FROM unstuck_running WHERE job = :job {lock FOR UPDATE}
