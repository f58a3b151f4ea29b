SELECT job, worker, target FROM unstuck_holds WHERE job = :job AND worker = :worker
