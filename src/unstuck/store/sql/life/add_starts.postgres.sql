-- Under the limits' locks: nobody else counts into these rows meanwhile.
INSERT INTO unstuck_starts AS s (limit_id, bucket, at, job, starts, until_at)
SELECT r.limit_id, r.bucket, slice.at, 0, r.starts, slice.at + l.per_us
  FROM json_to_recordset(CAST(:rows AS json)) AS r (limit_id BIGINT, bucket TEXT, starts BIGINT)
 CROSS JOIN LATERAL (SELECT rate, per_us FROM unstuck_limits WHERE id = r.limit_id LIMIT 1) AS l
 CROSS JOIN LATERAL (SELECT unstuck_slice(unstuck_now(), l.rate, l.per_us) AS at OFFSET 0) AS slice
ON CONFLICT (limit_id, bucket, at, job) DO UPDATE SET starts = s.starts + excluded.starts
