-- How each of these children of these jobs ended; :rows are in the order they are named. Results up to :most bytes for each job; the
-- database need not read the others to know their lengths.
SELECT found.parent, found.uid, found.state, found.error_type, found.error_message,
       found.bytes > 0 AND found.upto > :most AS is_too_large, CASE WHEN found.upto <= :most THEN e.result END AS result
  FROM (SELECT r.parent, j.id, r.uid, d.state, d.error_type, d.error_message, COALESCE(octet_length(d.result), 0) AS bytes, r.place,
               SUM(COALESCE(octet_length(d.result), 0)) OVER (PARTITION BY r.parent ORDER BY r.place) AS upto
          FROM json_to_recordset(CAST(:rows AS json)) AS r (parent BIGINT, place BIGINT, uid TEXT)
         CROSS JOIN LATERAL (SELECT id FROM unstuck_jobs WHERE uid = r.uid LIMIT 1) AS j
         CROSS JOIN LATERAL (SELECT child FROM unstuck_children WHERE child = j.id AND parent = r.parent LIMIT 1) AS c
          LEFT JOIN LATERAL (SELECT * FROM unstuck_done WHERE job = j.id LIMIT 1) AS d ON TRUE) AS found
  LEFT JOIN LATERAL (SELECT result FROM unstuck_done WHERE job = found.id LIMIT 1) AS e ON TRUE
 ORDER BY found.parent, found.place
