-- How each of these children of these jobs ended; :rows are in the order they are named. Results up to :most bytes for each job; the
-- database need not read the others to know their lengths.
SELECT found.parent, found.uid, found.state, found.error_type, found.error_message,
       found.bytes > 0 AND found.upto > :most AS is_too_large, CASE WHEN found.upto <= :most THEN e.result END AS result
  FROM (SELECT r.parent, j.id, r.uid, d.state, d.error_type, d.error_message, COALESCE({bytes d.result}, 0) AS bytes, r.place,
               SUM(COALESCE({bytes d.result}, 0)) OVER (PARTITION BY r.parent ORDER BY r.place) AS upto
          FROM {rows :rows AS r (parent BIGINT, place BIGINT, uid TEXT)}
         {by_key unstuck_jobs AS j ON j.uid = r.uid}
         {by_key unstuck_children AS c ON c.child = j.id AND c.parent = r.parent}
          {by_key_or_null unstuck_done AS d ON d.job = j.id}) AS found
  {by_key_or_null unstuck_done AS e ON e.job = found.id}
 ORDER BY found.parent, found.place
