-- The head of a target that comes back stands before everybody else.
INSERT INTO unstuck_line (target, place, job, route)
SELECT j.target, CASE WHEN t.head = j.id THEN :first ELSE -j.priority END, j.id, j.route
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_jobs j ON j.id = r.value
  CROSS JOIN unstuck_targets t ON t.id = j.target
