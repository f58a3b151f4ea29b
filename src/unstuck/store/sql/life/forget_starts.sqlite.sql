-- Of limits that are gone too.
DELETE FROM unstuck_starts
 WHERE (limit_id, bucket, at, job) IN (
       SELECT s.limit_id, s.bucket, s.at, s.job
         FROM unstuck_starts s
         LEFT JOIN unstuck_limits l ON l.id = s.limit_id
        WHERE s.until_at <= (SELECT unstuck_now())
          AND (l.per_us IS NULL OR s.at <= (SELECT unstuck_now()) - l.per_us)
        ORDER BY s.until_at
        LIMIT :batch OFFSET :past)
