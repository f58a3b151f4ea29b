-- CROSS JOIN, here and elsewhere, keeps SQLite from reading the JSON once per row of the table.
-- Which of these attempts are open, this worker's, and asked nothing. With one writer a look is as good as a lock; the
-- statements settle_returned_done and settle_returned_events and close_attempts then end just those.
SELECT a.job, a.token, a.claim, a.target, 0 AS news
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job'
 WHERE a.token = r.value ->> 'token' AND a.claim = r.value ->> 'claim' AND a.worker = :worker AND a.request IS NULL
