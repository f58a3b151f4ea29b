-- What a job's policy is, whoever enqueues it: what the job says over the row of its workflow (docs/decisions, policy).
ALTER TABLE unstuck_workflows ADD COLUMN max_timeout DOUBLE PRECISION;
-- A submit asks for the newest: what was looked up before it holds no longer.
CREATE INDEX unstuck_workflows_seen ON unstuck_workflows (seen_at);
-- Of jobs whose workflow nobody had registered yet: what they said. The first registration fills in the rest.
ALTER TABLE unstuck_policies ADD COLUMN workflow TEXT;
ALTER TABLE unstuck_policies ADD COLUMN said TEXT;
CREATE INDEX unstuck_policies_open ON unstuck_policies (workflow) WHERE workflow IS NOT NULL;

-- The versions of workflows, and whether an active worker has them: the doors go by the newest of those.
CREATE VIEW unstuck_versions AS
SELECT w.*, live.name IS NOT NULL AS is_live
  FROM unstuck_workflows w
  LEFT JOIN (SELECT DISTINCT k.code_version, known.name
               FROM unstuck_workers k
               JOIN LATERAL json_array_elements_text(CAST(k.serves AS json) -> 'workflows') AS known (name) ON TRUE
              WHERE k.ended_at IS NULL AND k.lease_until > (SELECT unstuck_now()) AND k.state = 'active') AS live
    ON live.name = w.name AND live.code_version = w.code_version;
