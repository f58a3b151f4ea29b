SELECT finished_at, job, (SELECT unstuck_now()) AS now
  FROM unstuck_done
 WHERE finished_at <= (SELECT unstuck_now() - :retention) AND (finished_at, job) > (:at, :job)
 ORDER BY finished_at, job
 LIMIT :most
