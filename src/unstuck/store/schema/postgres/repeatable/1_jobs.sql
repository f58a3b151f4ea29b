-- A text as the JSON object that it should be. One that was damaged is empty: who asks about many rows must not fail for one.
CREATE OR REPLACE FUNCTION unstuck_json(body TEXT) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    read json;
BEGIN
    read := CAST(body AS json);
    RETURN CASE WHEN json_typeof(read) = 'object' THEN read ELSE '{}' END;
EXCEPTION WHEN data_exception THEN
    RETURN '{}';
END $$;

CREATE OR REPLACE VIEW unstuck_job_rows AS
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
       j.replay_of, j.trace, j.span, j.signature, j.made_by
  FROM unstuck_jobs j
  LEFT JOIN unstuck_running r ON r.job = j.id
  LEFT JOIN unstuck_workers w ON w.id = r.worker
  LEFT JOIN unstuck_done d ON d.job = j.id
  LEFT JOIN unstuck_body_marks h ON h.job = j.id
  LEFT JOIN unstuck_targets t ON t.id = j.target;

-- The versions of workflows, and whether an active worker of the same tenant, or of all, has them: the doors go by the newest of those.
CREATE OR REPLACE VIEW unstuck_versions AS
SELECT w.*, live.name IS NOT NULL AS is_live
  FROM unstuck_workflows w
  LEFT JOIN (SELECT DISTINCT k.code_version, known.name, COALESCE(unstuck_json(k.serves) ->> 'tenant', '*') AS tenant
               FROM unstuck_workers k
               JOIN LATERAL json_array_elements_text(CASE WHEN json_typeof(unstuck_json(k.serves) -> 'workflows') = 'array'
                                                          THEN unstuck_json(k.serves) -> 'workflows' END) AS known (name) ON TRUE
              WHERE k.ended_at IS NULL AND k.lease_until > (SELECT unstuck_now()) AND k.state = 'active') AS live
    ON live.name = w.name AND live.code_version = w.code_version AND live.tenant = w.tenant;
