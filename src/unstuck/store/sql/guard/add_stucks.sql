INSERT INTO unstuck_stucks (tenant, workflow, at, job, token, kind, is_proven)
SELECT tenant, workflow, unstuck_now(), job, token, kind, is_proven
  FROM {rows :rows AS r (tenant TEXT, workflow TEXT, job BIGINT, token BIGINT, kind TEXT, is_proven SMALLINT)}
