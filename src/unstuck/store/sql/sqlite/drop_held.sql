DELETE FROM unstuck_blacklist_held WHERE (entry, job) IN (SELECT value ->> 'entry', value ->> 'job' FROM json_each(:rows))
