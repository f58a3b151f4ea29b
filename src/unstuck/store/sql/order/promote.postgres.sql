-- The targets are locked by an earlier statement: only then is what this one sees of their lines final. A target is open
-- while nobody has paused it and no old body may still live on it.
WITH next AS MATERIALIZED (
    SELECT t.id AS target, front.ctid AS spot, front.place, front.job, front.route
      FROM unstuck_targets t
     CROSS JOIN LATERAL (
           SELECT l.ctid, l.place, l.job, l.route
             FROM unstuck_line l
            WHERE l.target = t.id
            ORDER BY l.place, l.job
            LIMIT 1) AS front
     WHERE t.id = ANY (CAST(:targets AS BIGINT[]))
       AND (t.head IS NULL OR t.head = front.job)
       AND NOT EXISTS (SELECT 1 FROM unstuck_body_marks h WHERE h.target = t.id)
       AND NOT EXISTS (SELECT 1 FROM unstuck_pauses p
                        WHERE p.kind = 'target' AND p.name = t.name AND p.tenant = t.tenant
                          AND (p.until_at IS NULL OR p.until_at > (SELECT unstuck_now())))
), left_line AS (
    DELETE FROM unstuck_line WHERE ctid = ANY (ARRAY(SELECT spot FROM next))
), seated AS (
    UPDATE unstuck_targets AS t SET head = next.job, head_place = next.place FROM next WHERE t.id = next.target
), readied AS (
    INSERT INTO unstuck_ready (route, rank, job)
    SELECT next.route, j.rank, next.job
      FROM next
     CROSS JOIN LATERAL (SELECT rank FROM unstuck_jobs WHERE id = next.job LIMIT 1) AS j
)
SELECT target, place, job FROM next
