-- Everything that the gates of the claim look at, for one job, in one statement: under READ COMMITTED two would see two
-- moments. On SQLite :route and :head come from gate_facts_of: a value from outside finds its way into a view, one from a
-- row reads all of it.
WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
), me AS MATERIALIZED (
    SELECT v.*,
           (SELECT MIN(l.place) FROM unstuck_line l
             WHERE l.target = v.target_number AND l.job = v.number AND l.place IN (:first, -v.priority)) AS place
      FROM unstuck_job_rows v
     WHERE v.uid = :uid AND v.tenant = :tenant
)
SELECT me.*, clock.now AS at,
       (SELECT s.due_at FROM unstuck_timers s
         WHERE s.kind = 'start' AND s.due_at = me.available_at AND s.job = me.number) AS due_at,
       EXISTS (SELECT 1 FROM unstuck_ready r
                WHERE r.route = me.route AND r.rank = me.rank AND r.job = me.number) AS is_ready,
       t.head_place, t.blocked_at, head.uid AS head_uid, head.state AS head_state,
       COALESCE(head.started_at, head.claimed_at) AS head_since, head.available_at AS head_due_at,
       head.error_type AS head_error, CASE WHEN t.blocked_by IS NOT NULL THEN head.uid END AS blocked_uid,
       EXISTS (SELECT 1 FROM unstuck_ready r
                WHERE r.route = head.route AND r.rank = head.rank AND r.job = head.number) AS head_is_ready,
       (SELECT MIN(l.place) FROM unstuck_line l WHERE l.target = t.id) AS first_place,
       (SELECT j.uid FROM unstuck_jobs j
         WHERE j.id = (SELECT l.job FROM unstuck_line l WHERE l.target = t.id ORDER BY l.place, l.job LIMIT 1)) AS first_uid,
       (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_line l WHERE l.target = t.id LIMIT :ceiling) AS few) AS waiting,
       (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_line l
                               WHERE l.target = t.id AND (l.place, l.job) < (me.place, me.number)
                               LIMIT :ceiling) AS few) AS ahead,
       pause.since_at AS paused_at, pause.until_at AS paused_until, pause.by AS paused_by, pause.reason AS pause_reason,
       CASE WHEN pause.until_at <= clock.now
            THEN EXISTS (SELECT 1 FROM unstuck_inbox i WHERE i.target = t.id) END AS is_expected,
       (SELECT a.request_by FROM unstuck_running a WHERE a.job = me.number) AS request_by,
       holder.uid AS body_uid, mark.since_at AS body_since, mark.pid AS body_pid,
       keeper.name AS body_worker, keeper.lease_until AS body_lease_until,
       (SELECT COUNT(*) FROM (SELECT 1 FROM unstuck_ready r
                               WHERE r.route = me.route AND (r.rank, r.job) < (me.rank, me.number)
                               ORDER BY r.route, r.rank, r.job
                               LIMIT :ceiling) AS few) AS before,
       (SELECT COUNT(*)
          FROM (SELECT r.job FROM unstuck_ready r
                 WHERE r.route = me.route AND (r.rank, r.job) < (me.rank, me.number)
                 ORDER BY r.route, r.rank, r.job
                 LIMIT :ceiling) AS few
          JOIN unstuck_jobs j ON j.id = few.job
         WHERE j.priority > me.priority) AS before_by_priority,
       (SELECT f.code_version FROM unstuck_workflows f
         WHERE f.name = me.workflow AND f.tenant IN ('*', me.tenant) ORDER BY f.seen_at DESC LIMIT 1) AS known_version,
       (SELECT MAX(COALESCE(f.known_at, f.seen_at)) FROM unstuck_workflows f
         WHERE f.name = me.workflow AND f.tenant IN ('*', me.tenant)) AS known_at,
       (SELECT COUNT(*) FROM unstuck_workers w
         WHERE w.ended_at IS NULL AND w.lease_until > clock.now AND w.state IN ('active', 'draining')) AS sweepers,
       (SELECT COUNT(*) FROM unstuck_workers w
         WHERE w.ended_at IS NULL AND w.lease_until > clock.now AND w.state = 'active' AND substr(w.incarnation, 9, 1) <> '.') AS beside,
       (SELECT {json_array}({json_object}('tenant', few.tenant, 'queue', few.queue, 'workflow', few.workflow))
          FROM (SELECT DISTINCT k.tenant IS NULL OR k.tenant = me.tenant AS tenant,
                       k.queues IS NULL OR {holds k.queues me.queue} AS queue,
                       k.workflows IS NULL OR {holds k.workflows me.workflow} AS workflow
                  FROM unstuck_workers w
                  LEFT JOIN unstuck_api_keys k ON k.id = substr(w.incarnation, 1, 8)
                 WHERE w.ended_at IS NULL AND w.lease_until > clock.now AND w.state = 'active'
                   AND substr(w.incarnation, 9, 1) = '.') AS few) AS grants,
       (SELECT {json_array}({json_object}('duty', few.duty, 'since_at', few.since_at, 'tries', few.tries, 'error', few.error))
          FROM (SELECT q.duty, q.since_at, q.tries, q.error FROM unstuck_quarantine q
                 WHERE (q.item = me.number AND q.duty <> 'target') OR (q.item = me.target_number AND q.duty = 'target')
                 ORDER BY q.since_at LIMIT 10) AS few) AS quarantine,
       (SELECT {json w.info} -> 'roles' FROM unstuck_running a JOIN unstuck_workers w ON w.id = a.worker
         WHERE a.job = me.number) AS worker_roles,
       (SELECT {json w.info} -> 'executors' FROM unstuck_running a JOIN unstuck_workers w ON w.id = a.worker
         WHERE a.job = me.number AND a.request IS NOT NULL) AS worker_executors,
       (SELECT {json_array}({json_object}(
                   'code', g.code, 'kind', g.kind, 'name', g.name, 'tenant', g.tenant, 'since_at', g.since_at, 'until_at', g.until_at,
                   'by', g.by, 'reason', g.reason, 'used', g.used, 'most', g.most, 'free_at', g.free_at))
          FROM unstuck_gates g
         WHERE g.route = {postgres me.route}{sqlite :route} AND (g.probe IS NULL OR g.probe <> me.number)) AS gates,
       CASE WHEN me.state = 'WAITING' THEN
           (SELECT {json_object}('run', w.run, 'key', w.key, 'tenant', w.tenant, 'kind', w.kind, 'name', w.name, 'address', w.address,
                   'spec', w.spec, 'asked_at', w.asked_at, 'until_at', w.until_at, 'answer', w.answer,
                   'answered_at', w.answered_at, 'by', w.by, 'comment', w.comment)
              FROM unstuck_waits w
             WHERE w.job = me.number AND w.run = me.run
             ORDER BY w.answer IS NULL DESC, w.asked_at DESC
             LIMIT 1) END AS wait,
       (SELECT {json_array}({json_object}('uid', few.uid, 'state', few.state))
          FROM (SELECT d.uid, d.state
                  FROM unstuck_dependencies dep
                  JOIN unstuck_job_rows d ON d.number = dep.on_job
                 WHERE dep.job = me.number
                 LIMIT :ceiling) AS few) AS dependencies,
       (SELECT {json_array}({json_object}(
                   'name', few.name, 'state', few.state, 'beat_at', few.beat_at, 'lease_until', few.lease_until,
                   'is_live', few.is_live,
                   'is_loaded', few.is_loaded, 'knows_workflow', few.knows_workflow, 'code_version', few.code_version,
                   'slots', few.slots, 'problem', few.problem, 'roles', few.roles, 'running', few.running))
          FROM (SELECT w.name, w.state, w.beat_at, w.lease_until, w.lease_until > clock.now AS is_live,
                       w.serves <> '{}' AS is_loaded,
                       {holds w.serves workflows me.workflow} AS knows_workflow,
                       COALESCE({json w.info} ->> 'code_version', w.code_version) AS code_version,
                       {json w.info} -> 'slots' AS slots,
                       {json w.info} ->> 'import_error' AS problem, {json w.info} -> 'roles' AS roles,
                       (SELECT COUNT(*) FROM unstuck_running r WHERE r.worker = w.id) AS running
                  FROM unstuck_workers w
                 WHERE w.id IN (SELECT s.id FROM unstuck_workers s WHERE s.ended_at IS NULL
                                 UNION ALL
                                SELECT lately.id FROM (SELECT e.id FROM unstuck_workers e WHERE e.ended_at IS NOT NULL
                                                        ORDER BY e.ended_at DESC, e.id DESC LIMIT 100) AS lately)
                   AND CASE WHEN w.serves = '{}'
                            THEN w.queues = '[]' OR {holds w.queues me.queue}
                            ELSE {holds w.serves queues me.queue} AND COALESCE({json w.serves} ->> 'tenant', me.tenant) = me.tenant END
                 ORDER BY w.lease_until DESC
                 LIMIT :ceiling) AS few) AS workers
  FROM me
 CROSS JOIN clock
  LEFT JOIN unstuck_targets t ON t.id = me.target_number
  LEFT JOIN {postgres LATERAL }(SELECT v.* FROM unstuck_job_rows v WHERE v.number = {postgres COALESCE(t.blocked_by, t.head)}{sqlite :head}) AS head ON TRUE
  LEFT JOIN unstuck_pauses pause ON pause.kind = 'target' AND pause.name = t.name AND pause.tenant = t.tenant
  LEFT JOIN unstuck_body_marks mark
         ON mark.job = COALESCE((SELECT own.job FROM unstuck_body_marks own WHERE own.job = me.number),
                                (SELECT MIN(other.job) FROM unstuck_body_marks other WHERE other.target = t.id))
  LEFT JOIN unstuck_jobs holder ON holder.id = mark.job
  LEFT JOIN unstuck_workers keeper ON keeper.id = mark.worker
