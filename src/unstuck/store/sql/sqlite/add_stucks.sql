INSERT INTO unstuck_stucks (tenant, workflow, at, job, token, kind)
SELECT value ->> 'tenant', value ->> 'workflow', unstuck_now(), value ->> 'job', value ->> 'token', value ->> 'kind'
  FROM json_each(:rows)
