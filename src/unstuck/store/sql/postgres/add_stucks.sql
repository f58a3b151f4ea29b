INSERT INTO unstuck_stucks (tenant, workflow, at, job, token, kind)
SELECT tenant, workflow, unstuck_now(), job, token, kind
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, workflow TEXT, job BIGINT, token BIGINT, kind TEXT)
