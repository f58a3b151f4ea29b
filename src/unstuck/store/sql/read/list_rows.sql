-- Jobs that a filter wants, among these. Both say so in the same words.

-- name: list_rows
-- Of these jobs the first :most that the filter wants; what they are called is told as model.job.shown_state tells it.
-- :states is ',A,B,' or NULL; :way is 1 for the oldest first and -1 for the newest.
SELECT *
  FROM (SELECT j.*,
               CASE WHEN j.state = 'QUEUED' AND j.available_at > clock.now
                    THEN CASE WHEN j.failures > 0 OR j.losses > 0 THEN 'RETRYING' ELSE 'SCHEDULED' END
                    WHEN j.state = 'QUEUED' AND j.is_blocked = 1 THEN 'BLOCKED'
                    WHEN j.state = 'RUNNING' AND j.request = 'cancel' THEN 'CANCELLING'
                    WHEN j.state = 'FAILED' AND j.held = 1 THEN 'STUCK'
                    ELSE j.state END AS shown
          FROM unstuck_job_rows j
         CROSS JOIN (SELECT unstuck_now() AS now) AS clock
         WHERE j.number {in :numbers BIGINT}) AS seen
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:states AS TEXT) IS NULL
        OR CAST(:states AS TEXT) LIKE '%,' || state || ',%' OR CAST(:states AS TEXT) LIKE '%,' || shown || ',%')
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
   AND {within queue workflow}
   AND (CAST(:error_type AS TEXT) IS NULL OR error_type = CAST(:error_type AS TEXT))
   AND (CAST(:target AS TEXT) IS NULL OR target = CAST(:target AS TEXT))
   AND (CAST(:tag AS TEXT) IS NULL
        OR EXISTS (SELECT 1 FROM unstuck_tags g
                    WHERE g.tenant = seen.tenant AND g.tag = CAST(:tag AS TEXT) AND g.job = seen.number))
   AND (CAST(:has_letter AS INTEGER) IS NULL
        OR EXISTS (SELECT 1 FROM unstuck_dead_letters l
                    WHERE l.job = seen.number
                      AND (CAST(:letter_reason AS TEXT) IS NULL OR l.reason = CAST(:letter_reason AS TEXT))
                      AND (CAST(:letter_since AS BIGINT) IS NULL OR l.created_at >= CAST(:letter_since AS BIGINT))
                      AND (CAST(:letter_before AS BIGINT) IS NULL OR l.created_at < CAST(:letter_before AS BIGINT))))
   AND (CAST(:since AS BIGINT) IS NULL OR created_at >= CAST(:since AS BIGINT))
   AND (CAST(:before AS BIGINT) IS NULL OR created_at < CAST(:before AS BIGINT))
 ORDER BY :way * number
 LIMIT :most

-- name: list_matching
-- The same of those who need not know more than which jobs these are: no payload is read.
SELECT number, uid, state
  FROM (SELECT j.*,
               CASE WHEN j.state = 'QUEUED' AND j.available_at > clock.now
                    THEN CASE WHEN j.failures > 0 OR j.losses > 0 THEN 'RETRYING' ELSE 'SCHEDULED' END
                    WHEN j.state = 'QUEUED' AND j.is_blocked = 1 THEN 'BLOCKED'
                    WHEN j.state = 'RUNNING' AND j.request = 'cancel' THEN 'CANCELLING'
                    WHEN j.state = 'FAILED' AND j.held = 1 THEN 'STUCK'
                    ELSE j.state END AS shown
          FROM unstuck_job_rows j
         CROSS JOIN (SELECT unstuck_now() AS now) AS clock
         WHERE j.number {in :numbers BIGINT}) AS seen
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:states AS TEXT) IS NULL
        OR CAST(:states AS TEXT) LIKE '%,' || state || ',%' OR CAST(:states AS TEXT) LIKE '%,' || shown || ',%')
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
   AND {within queue workflow}
   AND (CAST(:error_type AS TEXT) IS NULL OR error_type = CAST(:error_type AS TEXT))
   AND (CAST(:target AS TEXT) IS NULL OR target = CAST(:target AS TEXT))
   AND (CAST(:tag AS TEXT) IS NULL
        OR EXISTS (SELECT 1 FROM unstuck_tags g
                    WHERE g.tenant = seen.tenant AND g.tag = CAST(:tag AS TEXT) AND g.job = seen.number))
   AND (CAST(:has_letter AS INTEGER) IS NULL
        OR EXISTS (SELECT 1 FROM unstuck_dead_letters l
                    WHERE l.job = seen.number
                      AND (CAST(:letter_reason AS TEXT) IS NULL OR l.reason = CAST(:letter_reason AS TEXT))
                      AND (CAST(:letter_since AS BIGINT) IS NULL OR l.created_at >= CAST(:letter_since AS BIGINT))
                      AND (CAST(:letter_before AS BIGINT) IS NULL OR l.created_at < CAST(:letter_before AS BIGINT))))
   AND (CAST(:since AS BIGINT) IS NULL OR created_at >= CAST(:since AS BIGINT))
   AND (CAST(:before AS BIGINT) IS NULL OR created_at < CAST(:before AS BIGINT))
 ORDER BY :way * number
 LIMIT :most
