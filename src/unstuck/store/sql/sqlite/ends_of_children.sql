-- How each of these children of these jobs ended; :rows are in the order they are named. Results up to :most bytes for each job.
SELECT found.parent, found.uid, found.state, found.error_type, found.error_message,
       found.bytes > 0 AND found.upto > :most AS is_too_large, CASE WHEN found.upto <= :most THEN e.result END AS result
  FROM (SELECT c.parent, j.id, j.uid, d.state, d.error_type, d.error_message, COALESCE(length(CAST(d.result AS BLOB)), 0) AS bytes,
               r.key AS place, SUM(COALESCE(length(CAST(d.result AS BLOB)), 0)) OVER (PARTITION BY c.parent ORDER BY r.key) AS upto
          FROM json_each(:rows) AS r
          CROSS JOIN unstuck_jobs j ON j.uid = r.value ->> 'uid'
          CROSS JOIN unstuck_children c ON c.child = j.id AND c.parent = r.value ->> 'parent'
          LEFT JOIN unstuck_done d ON d.job = j.id) AS found
  LEFT JOIN unstuck_done e ON e.job = found.id
 ORDER BY found.parent, found.place
