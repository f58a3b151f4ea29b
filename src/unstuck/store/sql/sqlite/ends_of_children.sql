-- Of these children of :job, in the order they are named, how each ended. Results up to :most bytes in all.
SELECT found.uid, found.state, found.error_type, found.error_message, found.bytes > 0 AND found.upto > :most AS is_too_large,
       CASE WHEN found.upto <= :most THEN e.result END AS result
  FROM (SELECT j.id, j.uid, d.state, d.error_type, d.error_message, COALESCE(length(CAST(d.result AS BLOB)), 0) AS bytes, r.key AS place,
               SUM(COALESCE(length(CAST(d.result AS BLOB)), 0)) OVER (ORDER BY r.key) AS upto
          FROM json_each(:children) AS r
          CROSS JOIN unstuck_jobs j ON j.uid = r.value
          CROSS JOIN unstuck_children c ON c.child = j.id AND c.parent = :job
          LEFT JOIN unstuck_done d ON d.job = j.id) AS found
  LEFT JOIN unstuck_done e ON e.job = found.id
 ORDER BY found.place
