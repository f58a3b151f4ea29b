-- The newest of each name.
SELECT *
  FROM (SELECT w.*, ROW_NUMBER() OVER (PARTITION BY name
                                       ORDER BY seen_at DESC, registered_at DESC, code_version DESC) AS place
          FROM unstuck_workflows w) AS ranked
 WHERE place = 1
 ORDER BY name
