DELETE FROM unstuck_line
 WHERE (target, place, job) IN (SELECT r.value ->> 'target', r.value ->> 'place', r.value ->> 'job' FROM json_each(:rows) AS r)
