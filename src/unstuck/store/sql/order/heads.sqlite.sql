-- Targets and whose turn it is.

-- name: seat_heads
UPDATE unstuck_targets AS t
   SET head = r.value ->> 'job', head_place = r.value ->> 'place'
  FROM json_each(:rows) AS r
 WHERE t.id = r.value ->> 'target'

-- name: leave_line
DELETE FROM unstuck_line
 WHERE (target, place, job) IN (SELECT r.value ->> 'target', r.value ->> 'place', r.value ->> 'job' FROM json_each(:rows) AS r)

-- name: running_on
SELECT route, COUNT(*) AS jobs
  FROM unstuck_running
 WHERE route IN (SELECT value FROM json_each(:routes))
 GROUP BY route
