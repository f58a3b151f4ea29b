-- The limits that a claim from a route must count. bucket: what such a limit counts together; of a workflow_key, whose name is the workflow's, only that workflow's jobs. grade: a row of one's own (1) wins over that of the family (2), and this over '*' (3). LIMIT 1: by key, whatever
-- the statistics say of a young table.
CREATE OR REPLACE VIEW unstuck_route_limits AS
SELECT route, kind, bucket, limit_id, name, tenant, concurrency, rate, per_us, set_by
  FROM (SELECT r.id AS route, l.kind, place.bucket, l.id AS limit_id, l.name, l.tenant, l.concurrency, l.rate, l.per_us, l.set_by, form.grade,
               MIN(form.grade) OVER (PARTITION BY r.id, l.kind, CASE WHEN l.kind <> 'tenant' THEN l.tenant END) AS best
          FROM unstuck_routes r
         CROSS JOIN (VALUES (1, 'queue', FALSE), (1, 'queue', TRUE), (1, 'workflow', FALSE), (1, 'workflow', TRUE),
                            (1, 'workflow_key', FALSE), (1, 'workflow_key', TRUE),
                            (1, 'tenant', FALSE), (3, 'tenant', TRUE),
                            (1, 'key', FALSE), (1, 'key', TRUE), (2, 'key', FALSE), (2, 'key', TRUE), (3, 'key', FALSE), (3, 'key', TRUE))
               AS form (grade, kind, is_of_all)
         CROSS JOIN LATERAL (SELECT CASE form.kind WHEN 'queue' THEN r.queue WHEN 'workflow' THEN r.workflow
                                                   WHEN 'tenant' THEN r.tenant ELSE r.limit_key END AS bucket) AS place
         CROSS JOIN LATERAL (SELECT * FROM unstuck_limits l
                              WHERE l.kind = form.kind
                                AND l.name = CASE WHEN form.kind = 'workflow_key' THEN r.workflow WHEN form.grade = 1 THEN place.bucket WHEN form.grade = 3 THEN '*'
                                                  WHEN r.limit_key LIKE '%:%' THEN SPLIT_PART(r.limit_key, ':', 1) || ':*' END
                                AND l.tenant = CASE WHEN form.is_of_all THEN '*' ELSE r.tenant END
                                AND (l.concurrency IS NOT NULL OR l.rate IS NOT NULL)
                              LIMIT 1) AS l
         WHERE place.bucket <> ''
           AND CASE WHEN form.is_of_all
                    THEN form.kind = ANY (ARRAY(SELECT known.kind
                                                  FROM (VALUES ('queue'), ('workflow'), ('workflow_key'), ('tenant'), ('key')) AS known (kind)
                                                 WHERE (SELECT l.tenant = '*' FROM unstuck_limits l WHERE l.kind = known.kind
                                                         ORDER BY (l.tenant = '*') DESC LIMIT 1)))
                    ELSE form.kind = ANY (ARRAY(SELECT known.kind
                                                  FROM (VALUES ('queue'), ('workflow'), ('workflow_key'), ('tenant'), ('key')) AS known (kind)
                                                 WHERE NOT (SELECT l.tenant = '*' FROM unstuck_limits l WHERE l.kind = known.kind
                                                             ORDER BY (l.tenant = '*') LIMIT 1))) END) AS found
 WHERE grade = best;

-- How far the limits of some routes are used up: each limit is counted once, however many of the routes it counts. Bodies are open
-- attempts, and jobs under a body mark, whose old body may still live. Whether a limit counts another route beside that for which
-- it was found depends on nothing but the bucket, its tenant and, of a workflow_key, the workflow: what has a row of its own is another bucket. first_at: with whose
-- leaving there is room again. One plan per session. No seqscan: beside a busy queue much of what running holds is dead, and only the
-- index passes by it. How many of the bodies each limit counts is found by one meeting of two lists, of what is asked and of what runs, neither of which
-- anybody has statistics of. MATERIALIZED: without it the planner asked for the names of all that runs once per limit.
CREATE OR REPLACE FUNCTION unstuck_room(asked BIGINT[])
RETURNS TABLE (route BIGINT, kind TEXT, bucket TEXT, limit_id BIGINT, name TEXT, tenant TEXT, concurrency BIGINT, rate BIGINT,
               per_us BIGINT, set_by TEXT, running BIGINT, started BIGINT, first_at BIGINT)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_nestloop = off SET enable_seqscan = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    instant BIGINT := unstuck_now();
BEGIN
    RETURN QUERY
    WITH RECURSIVE counting AS MATERIALIZED (
        SELECT l.* FROM unstuck_route_limits l WHERE l.route = ANY (asked)
    ), limits AS MATERIALIZED (
        SELECT DISTINCT limit_id, kind, name, bucket, tenant, concurrency, rate, per_us FROM counting
    ), forms AS MATERIALIZED (
        SELECT DISTINCT kind, tenant = '*' AS is_of_all FROM limits WHERE concurrency IS NOT NULL
    ), held AS MATERIALIZED (
        SELECT j.route, COUNT(*) AS jobs
          FROM unstuck_body_marks h
         CROSS JOIN LATERAL (SELECT route FROM unstuck_jobs WHERE id = h.job LIMIT 1) AS j
         GROUP BY j.route
    ), busy (route) AS (
        -- A loose index scan: one step per route on which something runs.
        (SELECT a.route FROM unstuck_running a WHERE (SELECT TRUE FROM forms LIMIT 1) ORDER BY a.route LIMIT 1)
         UNION ALL
        SELECT (SELECT a.route FROM unstuck_running a WHERE a.route > busy.route ORDER BY a.route LIMIT 1)
          FROM busy
         WHERE busy.route IS NOT NULL
    ), named AS MATERIALIZED (
        SELECT r.id AS route, r.workflow, f.kind, CASE WHEN f.is_of_all THEN '*' ELSE r.tenant END AS tenant,
               CASE f.kind WHEN 'queue' THEN r.queue WHEN 'workflow' THEN r.workflow
                           WHEN 'tenant' THEN r.tenant ELSE r.limit_key END AS bucket
          FROM (SELECT busy.route FROM busy UNION SELECT held.route FROM held) AS place
         CROSS JOIN LATERAL (SELECT * FROM unstuck_routes WHERE id = place.route LIMIT 1) AS r
         CROSS JOIN forms f
    ), bodies AS (
        SELECT l.limit_id, l.bucket, SUM(body.jobs) AS jobs
          FROM limits l
          JOIN named ON named.kind = l.kind AND named.bucket = l.bucket AND named.tenant = l.tenant
                    AND (l.kind <> 'workflow_key' OR named.workflow = l.name)
         CROSS JOIN LATERAL (SELECT (SELECT COUNT(*) FROM unstuck_running a WHERE a.route = named.route)
                                    + COALESCE((SELECT held.jobs FROM held WHERE held.route = named.route), 0) AS jobs
                             OFFSET 0) AS body
         WHERE l.concurrency IS NOT NULL
         GROUP BY l.limit_id, l.bucket
    ), used AS MATERIALIZED (
        SELECT l.limit_id, l.bucket, l.rate, l.per_us, CAST(COALESCE(bodies.jobs, 0) AS BIGINT) AS running, CAST(s.started AS BIGINT) AS started
          FROM limits l
          LEFT JOIN bodies ON bodies.limit_id = l.limit_id AND bodies.bucket = l.bucket
         CROSS JOIN LATERAL (SELECT COALESCE(SUM(s.starts), 0) AS started
                               FROM unstuck_starts s
                              WHERE l.rate IS NOT NULL
                                AND s.limit_id = l.limit_id AND s.bucket = l.bucket AND s.at > instant - l.per_us) AS s
    )
    SELECT c.route, c.kind, c.bucket, c.limit_id, c.name, c.tenant, c.concurrency, c.rate, c.per_us, c.set_by, u.running, u.started,
           CASE WHEN u.started >= u.rate THEN
           (SELECT MIN(later.at)
              FROM (SELECT s.at, SUM(SUM(s.starts)) OVER (ORDER BY s.at DESC) - SUM(s.starts) AS left_over
                      FROM unstuck_starts s
                     WHERE s.limit_id = u.limit_id AND s.bucket = u.bucket AND s.at > instant - u.per_us
                     GROUP BY s.at) AS later
             WHERE later.left_over < u.rate) END
      FROM counting c
      JOIN used u ON u.limit_id = c.limit_id AND u.bucket = c.bucket;
END
$$;

-- For `why`.
CREATE OR REPLACE VIEW unstuck_limit_room AS
SELECT r.id AS route, room.kind, room.bucket, room.limit_id, room.name, room.tenant, room.concurrency, room.rate, room.per_us, room.set_by,
       room.running, room.started, room.first_at
  FROM unstuck_routes r
 CROSS JOIN LATERAL unstuck_room(ARRAY[r.id]) AS room;
