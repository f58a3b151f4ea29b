-- SQLite has no writing CTEs: what returned closes by a statement per table.

-- name: settle_returned
-- CROSS JOIN, here and elsewhere, keeps SQLite from reading the JSON once per row of the table.
-- Which of these attempts are open, this worker's, and asked nothing. With one writer a look is as good as a lock; the
-- statements settle_returned_done and settle_returned_events and close_attempts then end just those.
SELECT a.job, a.token, a.claim, a.target, 0 AS news
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job'
 WHERE a.token = r.value ->> 'token' AND a.claim = r.value ->> 'claim' AND a.worker = :worker AND a.request IS NULL

-- name: settle_returned_done
INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result)
SELECT a.job, a.route, a.run, 'COMPLETED', a.token, a.event_count + 1, a.worker, a.claimed_at, :now,
       r.value ->> 'duration_ms', r.value ->> 'result'
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 'job'

-- name: settle_returned_events
INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT d.job, d.event_count, d.finished_at, 'completed', d.run, d.token, r.value ->> 'data'
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_done d ON d.job = r.value ->> 'job'
