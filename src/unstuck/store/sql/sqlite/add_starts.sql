INSERT INTO unstuck_starts (limit_id, bucket, at, job)
SELECT value ->> 'limit_id', value ->> 'bucket', unstuck_now(), value ->> 'job'
  FROM json_each(:rows)
