INSERT INTO unstuck_line (target, place, job, route)
SELECT r.value ->> 'target', r.value ->> 'place', r.value ->> 'job', r.value ->> 'route' FROM json_each(:rows) AS r
