-- Of these children of :job, in the order they are named, how each ended. Results up to :most bytes in all; the database need
-- not read the others to know their lengths.
SELECT found.uid, found.state, found.error_type, found.error_message, found.bytes > 0 AND found.upto > :most AS is_too_large,
       CASE WHEN found.upto <= :most THEN e.result END AS result
  FROM (SELECT j.id, j.uid, d.state, d.error_type, d.error_message, COALESCE(octet_length(d.result), 0) AS bytes, r.place,
               SUM(COALESCE(octet_length(d.result), 0)) OVER (ORDER BY r.place) AS upto
          FROM unnest(CAST(:children AS TEXT[])) WITH ORDINALITY AS r (uid, place)
          JOIN unstuck_jobs j ON j.uid = r.uid
          JOIN unstuck_children c ON c.child = j.id AND c.parent = :job
          LEFT JOIN unstuck_done d ON d.job = j.id) AS found
  LEFT JOIN unstuck_done e ON e.job = found.id
 ORDER BY found.place
