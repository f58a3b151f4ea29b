-- Set these aside, or count one more failure; is_new tells the first time from the later ones.
INSERT INTO unstuck_quarantine (duty, item, since_at, tried_at, tries, error, by)
SELECT :duty, value ->> 'item', now.at, now.at, 1, value ->> 'error', :by
  FROM json_each(:rows), (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
ON CONFLICT (duty, item) DO UPDATE
   SET tried_at = excluded.tried_at, tries = tries + 1, error = excluded.error, by = excluded.by
RETURNING item, tries = 1 AS is_new
