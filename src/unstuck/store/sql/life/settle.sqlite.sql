-- SQLite has no writing CTEs: what returned closes by a statement per table.

-- name: settle_returned
-- CROSS JOIN, here and elsewhere, keeps SQLite from reading the JSON once per row of the table.
-- The open attempts of these jobs that are this worker's and were asked nothing; which of them are meant, by token and claim, the
-- caller sees. With one writer a look is as good as a lock; the statements settle_returned_done and settle_returned_events and
-- close_attempts then end just those.
SELECT a.job, a.token, a.claim, a.target
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value
 WHERE a.worker = :worker AND a.request IS NULL

-- name: settle_returned_done
-- A row is (job, duration, result): every ->> reads its row anew.
INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms, result)
SELECT a.job, a.route, a.run, 'COMPLETED', a.token, a.event_count + 1, a.worker, a.claimed_at, :now, r.value ->> 1, r.value ->> 2
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value ->> 0

-- name: settle_returned_events
INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT d.job, d.event_count, d.finished_at, 'completed', d.run, d.token,
       CASE WHEN d.duration_ms IS NULL THEN json_object('by', :by, 'claim', a.claim)
            ELSE json_object('by', :by, 'claim', a.claim, 'duration_ms', d.duration_ms) END
  FROM json_each(:jobs) AS r
  CROSS JOIN unstuck_running a ON a.job = r.value
  CROSS JOIN unstuck_done d ON d.job = a.job
