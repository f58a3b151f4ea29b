-- Nobody's: the next sweep lifts them, whoever lives.
UPDATE unstuck_holds
   SET worker = 0
 WHERE (job, worker) IN (SELECT r.value ->> 'job', r.value ->> 'worker' FROM json_each(:rows) AS r)
