-- Set these aside, or count one more failure; is_new tells the first time from the later ones.
INSERT INTO unstuck_quarantine AS q (duty, item, since_at, tried_at, tries, error, by)
SELECT :duty, item, now.at, now.at, 1, error, :by
  FROM {rows :rows AS r (item BIGINT, error TEXT)}
 CROSS JOIN (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
 ORDER BY item
ON CONFLICT (duty, item) DO UPDATE
   SET tried_at = excluded.tried_at, tries = q.tries + 1, error = excluded.error, by = excluded.by
RETURNING item, tries = 1 AS is_new
