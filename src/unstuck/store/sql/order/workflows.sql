-- The newest of each name, as `workflow` says.
SELECT *
  FROM (SELECT w.*, ROW_NUMBER() OVER (PARTITION BY name
                                       ORDER BY is_live DESC, tenant = '*', registered_at DESC, seen_at DESC, code_version DESC) AS place
          FROM unstuck_versions w
         WHERE tenant IN ('*', :tenant)) AS ranked
 WHERE place = 1
 ORDER BY name
