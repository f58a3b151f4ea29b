SELECT r.value ->> 'limit_id' AS limit_id, r.value ->> 'bucket' AS bucket,
       (SELECT COALESCE(SUM(s.starts), 0) FROM unstuck_starts s
         WHERE s.limit_id = r.value ->> 'limit_id' AND s.bucket = r.value ->> 'bucket'
           AND s.at > unstuck_now() - (r.value ->> 'per_us')) AS started
  FROM json_each(:rows) AS r
