-- Of limits that are gone too. One limit after the other: its oldest starts stand first in the index of each bucket.
DELETE FROM unstuck_starts
 WHERE ctid = ANY (ARRAY(
       SELECT s.ctid
         FROM unstuck_starts s
         LEFT JOIN unstuck_limits l ON l.id = s.limit_id
        WHERE l.per_us IS NULL OR s.at <= (SELECT unstuck_now()) - l.per_us
        LIMIT :batch
          FOR UPDATE OF s SKIP LOCKED))
