DROP VIEW IF EXISTS unstuck_job_rows;
CREATE VIEW unstuck_job_rows AS
SELECT j.id AS number, j.uid, j.tenant, j.queue, j.workflow, j.route, t.name AS target, j.target AS target_number, j.priority, j.rank,
       CASE WHEN r.job IS NOT NULL THEN 'RUNNING' ELSE COALESCE(d.state, j.state) END AS state,
       COALESCE(r.run, d.run, j.run) AS run,
       COALESCE(r.token, d.token, j.token) AS token,
       COALESCE(r.event_count, d.event_count, j.event_count) AS event_count,
       j.payload, j.policy, j.created_at, j.available_at, j.expires_at, j.started, j.on_hold, j.after_failure,
       j.failures, j.losses, j.suspects, j.alone, j.key, j.tags, (SELECT o.limit_key FROM unstuck_routes o WHERE o.id = j.route) AS limit_key,
       r.request, r.requested_at, r.request_reason, r.claim, w.name AS worker, r.claimed_at, r.started_at,
       w.beat_at AS heartbeat_at, w.lease_until,
       d.finished_at, d.duration_ms, d.result, COALESCE(d.late, 0) AS late,
       CASE WHEN d.job IS NULL THEN j.error_type ELSE d.error_type END AS error_type,
       CASE WHEN d.job IS NULL THEN j.error_message ELSE d.error_message END AS error_message,
       CASE WHEN h.job IS NULL THEN 0 ELSE 1 END AS held,
       CASE WHEN t.head = j.id THEN 1 ELSE 0 END AS is_head,
       CASE WHEN t.blocked_by = j.id THEN 1 ELSE 0 END AS is_blocker,
       CASE WHEN t.blocked_by <> j.id THEN 1 ELSE 0 END AS is_blocked,
       j.replay_of, j.trace, j.span, CAST(j.signature AS BLOB) AS signature, j.made_by
  FROM unstuck_jobs j
  LEFT JOIN unstuck_running r ON r.job = j.id
  LEFT JOIN unstuck_workers w ON w.id = r.worker
  LEFT JOIN unstuck_done d ON d.job = j.id
  LEFT JOIN unstuck_body_marks h ON h.job = j.id
  LEFT JOIN unstuck_targets t ON t.id = j.target;

-- The versions of workflows, and whether an active worker of the same tenant, or of all, has them: the doors go by the newest of those.
DROP VIEW IF EXISTS unstuck_versions;
CREATE VIEW unstuck_versions AS
SELECT w.*, live.name IS NOT NULL AS is_live
  FROM unstuck_workflows w
  LEFT JOIN (SELECT DISTINCT k.code_version, known.value AS name, COALESCE(k.sound ->> 'tenant', '*') AS tenant
               FROM (SELECT o.*, CASE WHEN json_valid(o.serves) THEN o.serves END AS sound FROM unstuck_workers o) k, json_each(k.sound, '$.workflows') AS known
              WHERE k.ended_at IS NULL AND k.lease_until > unstuck_now() AND k.state = 'active') AS live
    ON live.name = w.name AND live.code_version = w.code_version AND live.tenant = w.tenant;
