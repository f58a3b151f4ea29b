-- Move up to each share's limit of its route from ready to running.
-- SKIP LOCKED lets workers claim side by side and makes a claim wait for nobody; ctid = ANY (ARRAY(...)) keeps the planner from
-- estimating the LIMIT at a tenth of the table. The wide jobs row is read, never written. Gates: the worker's lease holds, this
-- claim id has not been answered before (but for what this very call has :opened), no pause or blacklist shuts the route and no limit counts it (unless this transaction
-- has counted and holds the limits' locks), no body mark of the job and nothing set aside that could
-- not be claimed (such rows stay in ready). The guard's lock is taken
-- once, in shared mode; the blacklist is read only if it has entries.
-- Rows are sent before the commit, and whoever does not read them would keep them from everybody. So an answer above :room bytes
-- comes without its texts (payload IS NULL), and claimed_jobs reads those afterwards. octet_length reads no text that is stored apart.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), guard AS MATERIALIZED (
    SELECT unstuck_pass_guard() AS entries
), picked AS (
    DELETE FROM unstuck_ready
     WHERE ctid = ANY (ARRAY(
           SELECT front.ctid
             FROM json_to_recordset(CAST(:shares AS json)) AS share (route BIGINT, most BIGINT, rank BIGINT, job BIGINT, last_rank BIGINT, last_job BIGINT,
                                                                           counted BOOLEAN)
            CROSS JOIN LATERAL (
                  SELECT CASE WHEN (SELECT entries FROM guard) <> 0 OR EXISTS (SELECT 1 FROM unstuck_pauses)
                                OR (NOT share.counted AND EXISTS (SELECT 1 FROM unstuck_limits))
                              THEN unstuck_passes(share.route, share.counted, (SELECT entries FROM guard) <> 0) END AS job) AS gate
            CROSS JOIN LATERAL (
                  SELECT ready.ctid, ready.job
                    FROM unstuck_ready AS ready
                   WHERE ready.route = share.route
                     AND (ready.rank, ready.job) >= (share.rank, share.job)
                     AND (ready.rank, ready.job) <= (share.last_rank, share.last_job)
                     AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks AS mark WHERE mark.job = ready.job)
                     AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine AS aside WHERE aside.duty = :without AND aside.item = ready.job)
                   ORDER BY ready.rank, ready.job
                   LIMIT share.most
                     FOR UPDATE OF ready SKIP LOCKED) AS front
            WHERE EXISTS (SELECT 1 FROM unstuck_workers
                           WHERE id = :worker AND state = 'active' AND lease_until > (SELECT now FROM clock))
              AND (SELECT COUNT(*) FROM unstuck_running WHERE worker = :worker AND claim = :claim) = CAST(:opened AS BIGINT)
              AND (SELECT entries FROM guard) >= 0
              AND gate.job IS DISTINCT FROM 0
              -- Above the LIMIT: inside, the planner would take it for a reason to sort the whole route.
              AND (gate.job IS NULL OR front.job = gate.job)))
    RETURNING job
), attempt AS (
    SELECT j.id, j.token + 1 AS token, j.uid, j.run, j.event_count + 1 AS event_count, j.route, j.target, j.rank, j.payload, j.policy,
           j.alone, 1 + j.failures + j.losses + j.suspects AS attempt, j.expires_at, j.trace, j.span, clock.now
      FROM picked
      JOIN unstuck_jobs j ON j.id = picked.job
     CROSS JOIN clock
), opened AS (
    INSERT INTO unstuck_running (job, token, claim, worker, route, policy, target, run, event_count, claimed_at)
    SELECT id, token, :claim, :worker, route, policy, target, run, event_count, now FROM attempt
), told AS (
    INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
    SELECT id, event_count, now, 'claimed', run, token, :data FROM attempt
), answer AS MATERIALIZED (
    SELECT SUM(160 + octet_length(payload) + COALESCE(octet_length(trace), 0)) <= :room AS fits FROM attempt
)
SELECT id, token, run, route, rank, policy, alone, attempt, expires_at, target IS NOT NULL AS has_target, now, uid, trace, span,
       CASE WHEN fits THEN payload END AS payload
  FROM attempt
 CROSS JOIN answer
 ORDER BY rank, id
