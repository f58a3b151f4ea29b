-- Under the limits' locks: nobody else counts into these rows meanwhile. OFFSET 0: of one row the clock is asked once.
INSERT INTO unstuck_starts (limit_id, bucket, at, job, starts, until_at)
SELECT slice.limit_id, slice.bucket, slice.at, 0, slice.starts, slice.at + slice.per_us
  FROM (SELECT r.limit_id, r.bucket, r.starts, l.per_us,
               CASE WHEN l.rate <= 100 THEN unstuck_now()
                    ELSE (unstuck_now() / {greatest}(1, l.per_us / 100) + 1) * {greatest}(1, l.per_us / 100) END AS at
          FROM {rows :rows AS r (limit_id BIGINT, bucket TEXT, starts BIGINT)}
          {by_key unstuck_limits AS l ON l.id = r.limit_id}
        {postgres OFFSET 0}) AS slice
 WHERE TRUE
ON CONFLICT (limit_id, bucket, at, job) DO UPDATE SET starts = unstuck_starts.starts + excluded.starts
