-- Policies, by their numbers.

-- name: find_policies
SELECT d.id, d.digest
  FROM {rows :rows AS r (digest TEXT)}
  {by_key unstuck_policies AS d ON d.digest = r.digest}

-- name: add_policies
-- The rows come sorted, as those of add_routes do.
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us, workflow, said)
SELECT digest, body, timeout_us, grace_us, workflow, said
  FROM {rows :rows AS r (digest TEXT, body TEXT, timeout_us BIGINT, grace_us BIGINT, workflow TEXT, said TEXT)}
 WHERE TRUE
ON CONFLICT (digest) DO NOTHING

-- name: policy
SELECT body, workflow IS NOT NULL AS is_open FROM unstuck_policies WHERE id = :policy

-- name: open_policies
SELECT id, said FROM unstuck_policies WHERE workflow = :workflow ORDER BY id

-- name: close_policy
UPDATE unstuck_policies
   SET body = :body, timeout_us = :timeout_us, grace_us = :grace_us, workflow = NULL, said = NULL
 WHERE id = :policy

-- name: newest_registration
SELECT COALESCE(MAX(seen_at), 0) AS seen FROM unstuck_workflows

-- name: rules_of_workflows
-- What the doors go by, as `workflow` says.
SELECT name, policy, max_timeout
  FROM (SELECT w.name, w.policy, w.max_timeout,
               ROW_NUMBER() OVER (PARTITION BY w.name
                                  ORDER BY w.is_live DESC, w.registered_at DESC, w.seen_at DESC, w.code_version DESC) AS place
          FROM unstuck_versions w
         WHERE w.name {in :names TEXT}) AS ranked
 WHERE place = 1
