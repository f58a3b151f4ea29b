INSERT INTO unstuck_starts (limit_id, bucket, at, job)
SELECT limit_id, bucket, unstuck_now(), job
  FROM json_to_recordset(CAST(:rows AS json)) AS r (limit_id BIGINT, bucket TEXT, job BIGINT)
