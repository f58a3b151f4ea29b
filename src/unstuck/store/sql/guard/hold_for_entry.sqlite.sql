-- mark_held sets the jobs' own mark.
INSERT INTO unstuck_blacklist_held (entry, job)
SELECT value ->> 'entry', value ->> 'job'
  FROM json_each(:rows)
 WHERE TRUE
ON CONFLICT (entry, job) DO NOTHING
