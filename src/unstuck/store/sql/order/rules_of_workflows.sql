-- What the doors go by, as `workflow` says.
SELECT name, policy, max_timeout
  FROM (SELECT w.name, w.policy, w.max_timeout,
               ROW_NUMBER() OVER (PARTITION BY w.name
                                  ORDER BY w.is_live DESC, w.registered_at DESC, w.seen_at DESC, w.code_version DESC) AS place
          FROM unstuck_versions w
         WHERE w.name {in :names TEXT}) AS ranked
 WHERE place = 1
