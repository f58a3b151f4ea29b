SELECT job, worker, target FROM unstuck_body_marks WHERE job = :job AND worker = :worker
