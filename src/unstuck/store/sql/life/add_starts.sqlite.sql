INSERT INTO unstuck_starts (limit_id, bucket, at, job, starts, until_at)
SELECT r.limit_id, r.bucket, r.slice, 0, r.starts, r.slice + r.per_us
  FROM (SELECT l.id AS limit_id, value ->> 'bucket' AS bucket, value ->> 'starts' AS starts, l.per_us,
               CASE WHEN l.rate <= 100 THEN unstuck_now()
                    ELSE (unstuck_now() / MAX(1, l.per_us / 100) + 1) * MAX(1, l.per_us / 100) END AS slice
          FROM json_each(:rows)
          CROSS JOIN unstuck_limits l ON l.id = value ->> 'limit_id') AS r
 WHERE TRUE
ON CONFLICT (limit_id, bucket, at, job) DO UPDATE SET starts = starts + excluded.starts
