INSERT INTO unstuck_waits (job, run, key, tenant, kind, name, address, spec, token, asked_at, until_at, answer, payload, answered_at, by)
SELECT value ->> 'job', value ->> 'run', value ->> 'key', value ->> 'tenant', value ->> 'kind', value ->> 'name', value ->> 'address',
       value ->> 'spec', value ->> 'token', value ->> 'asked_at', value ->> 'until_at', value ->> 'answer', value ->> 'payload',
       value ->> 'answered_at', value ->> 'by'
  FROM json_each(:rows)
