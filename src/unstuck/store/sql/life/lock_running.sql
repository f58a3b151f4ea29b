SELECT job, token, claim, worker, run, n, request FROM unstuck_running WHERE job = :job {lock FOR UPDATE}
