DELETE FROM unstuck_holds
 WHERE (job, worker) IN (SELECT r.value ->> 'job', r.value ->> 'worker' FROM json_each(:rows) AS r)
