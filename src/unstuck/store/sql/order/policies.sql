-- Policies, by their numbers.

-- name: find_policies
SELECT d.id, d.digest
  FROM {rows :rows AS r (digest TEXT)}
  {by_key unstuck_policies AS d ON d.digest = r.digest}

-- name: add_policies
-- The rows come sorted, as those of add_routes do.
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us, tenant, workflow, said)
SELECT digest, body, timeout_us, grace_us, tenant, workflow, said
  FROM {rows :rows AS r (digest TEXT, body TEXT, timeout_us BIGINT, grace_us BIGINT, tenant TEXT, workflow TEXT, said TEXT)}
 WHERE TRUE
ON CONFLICT (digest) DO NOTHING

-- name: policy
SELECT body, workflow IS NOT NULL AS is_open FROM unstuck_policies WHERE id = :policy

-- name: open_policies
-- Of one tenant, or of all.
SELECT id, said FROM unstuck_policies WHERE workflow = :workflow AND (CAST(:tenant AS TEXT) = '*' OR tenant = CAST(:tenant AS TEXT)) ORDER BY id

-- name: close_policy
UPDATE unstuck_policies
   SET body = :body, timeout_us = :timeout_us, grace_us = :grace_us, tenant = NULL, workflow = NULL, said = NULL
 WHERE id = :policy

-- name: newest_registration
SELECT COALESCE(MAX(seen_at), 0) AS seen FROM unstuck_workflows

-- name: rules_of_workflows
-- What the doors go by, as `workflow` says: of each name what holds for all tenants, and for those that have rows of their own.
-- has_own: whether any tenant has.
SELECT name, tenant, policy, max_timeout, has_own
  FROM (SELECT w.name, r.tenant, w.policy, w.max_timeout,
               ROW_NUMBER() OVER (PARTITION BY w.name, r.tenant
                                  ORDER BY w.is_live DESC, w.tenant = '*', w.registered_at DESC, w.seen_at DESC, w.code_version DESC) AS place,
               EXISTS (SELECT 1 FROM unstuck_workflows o WHERE o.name = w.name AND o.tenant <> '*') AS has_own
          FROM {rows :rows AS r (name TEXT, tenant TEXT)}
          JOIN unstuck_versions w ON w.name = r.name AND w.tenant IN ('*', r.tenant)) AS ranked
 WHERE place = 1
