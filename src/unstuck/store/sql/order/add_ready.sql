INSERT INTO unstuck_ready (route, rank, job)
SELECT j.route, j.rank, j.id
  FROM unstuck_jobs j
 WHERE j.id {in :jobs BIGINT}
