-- Move up to each share's limit of its route from ready to running.
-- SKIP LOCKED lets workers claim side by side and makes a claim wait for nobody; ctid = ANY (ARRAY(...)) keeps the planner from
-- estimating the LIMIT at a tenth of the table. The wide jobs row is read, never written. Gates: the worker's lease holds, no
-- hold on the job (such rows stay in ready), and this claim id has not been answered before.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), picked AS (
    DELETE FROM unstuck_ready
     WHERE ctid = ANY (ARRAY(
           SELECT front.ctid
             FROM json_to_recordset(CAST(:shares AS json)) AS share (route BIGINT, most BIGINT)
            CROSS JOIN LATERAL (
                  SELECT ready.ctid
                    FROM unstuck_ready AS ready
                   WHERE ready.route = share.route
                     AND NOT EXISTS (SELECT 1 FROM unstuck_holds AS hold WHERE hold.job = ready.job)
                   ORDER BY ready.rank, ready.job
                   LIMIT share.most
                     FOR UPDATE OF ready SKIP LOCKED) AS front
            WHERE EXISTS (SELECT 1 FROM unstuck_workers
                           WHERE id = :worker AND state = 'active' AND lease_until > (SELECT now FROM clock))
              AND NOT EXISTS (SELECT 1 FROM unstuck_running WHERE worker = :worker AND claim = :claim)))
    RETURNING job
), attempt AS (
    SELECT j.id, j.token + 1 AS token, j.uid, j.run, j.n + 1 AS n, j.tenant, j.queue, j.workflow, j.route, j.target, j.rank,
           j.payload, j.policy, j.alone, j.created_at, j.failures, j.losses, j.suspects,
           clock.now, clock.now + p.timeout_us + p.grace_us AS overdue_at
      FROM picked
      JOIN unstuck_jobs j ON j.id = picked.job
      JOIN unstuck_policies p ON p.id = j.policy
     CROSS JOIN clock
), opened AS (
    INSERT INTO unstuck_running (job, token, claim, worker, route, policy, target, run, n, claimed_at, overdue_at)
    SELECT id, token, :claim, :worker, route, policy, target, run, n, now, overdue_at FROM attempt
), told AS (
    INSERT INTO unstuck_events (job, n, at, kind, run, token, data)
    SELECT id, n, now, 'claimed', run, token, :data FROM attempt
)
SELECT id, token, uid, run, tenant, queue, workflow, payload, policy, alone, created_at, failures, losses, suspects
  FROM attempt
 ORDER BY rank, id
