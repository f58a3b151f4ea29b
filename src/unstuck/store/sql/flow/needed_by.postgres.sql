-- Of each job :waiter, of what the :jobs it waits for wait for, directly or through others, and has not ended (they themselves too): who must
-- run on one of these :targets, or is one of those :above. UNION: each once, so a circle ends too. LATERAL ... OFFSET 0 as in leave_children.
SELECT r.waiter, found.*
  FROM json_to_recordset(CAST(:rows AS json)) AS r (waiter BIGINT, jobs BIGINT[], targets BIGINT[], above BIGINT[])
 CROSS JOIN LATERAL (
       WITH RECURSIVE needed (number) AS (
           SELECT own.job FROM unnest(r.jobs) AS own (job)
            UNION
           SELECT further.on_job
             FROM needed
            CROSS JOIN LATERAL (
                  SELECT d.on_job
                    FROM unstuck_dependencies d
                   WHERE d.job = needed.number AND (SELECT 1 FROM unstuck_done e WHERE e.job = d.on_job) IS NULL
                  OFFSET 0) AS further
       )
       SELECT j.id AS number, j.uid, j.target, (SELECT t.name FROM unstuck_targets t WHERE t.id = j.target) AS target_name
         FROM (SELECT number FROM needed LIMIT :most) AS reached
        CROSS JOIN LATERAL (SELECT id, uid, target FROM unstuck_jobs WHERE id = reached.number LIMIT 1) AS j
        WHERE j.target = ANY (r.targets) OR j.id = ANY (r.above)) AS found
