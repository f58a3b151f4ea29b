-- Alerts: what is wrong, and was. Nothing here waits for a row that somebody holds.

-- name: add_alert_rules
INSERT INTO unstuck_alert_rules (rule)
SELECT rule FROM {list :rules AS r (rule TEXT)} WHERE TRUE
ON CONFLICT (rule) DO NOTHING

-- name: alert_rules
SELECT r.*, unstuck_now() AS now FROM unstuck_alert_rules r ORDER BY r.rule

-- name: take_alert_turn
-- Whoever comes first, and nobody else before its time has come again. One that was taken in the future, because a clock went back, is anybody's.
UPDATE unstuck_alert_rules
   SET turn_at = unstuck_now(), by = :by, began_at = CASE WHEN place IS NULL THEN unstuck_now() ELSE began_at END
 WHERE rule {among}
       SELECT rule FROM unstuck_alert_rules
        WHERE rule = :rule
          AND (turn_at <= (SELECT unstuck_now()) - CAST(:every AS BIGINT) OR turn_at > (SELECT unstuck_now()))
          {lock FOR UPDATE SKIP LOCKED}
       {end}
RETURNING began_at, place, turn_at AS now, by

-- name: end_alert_turn
-- By whoever has it still: one that was frozen says nothing about the turn of the next.
UPDATE unstuck_alert_rules
   SET place = CAST(:place AS TEXT),
       looked_at = CASE WHEN CAST(:place AS TEXT) IS NULL AND CAST(:error AS TEXT) IS NULL THEN unstuck_now() ELSE looked_at END,
       failing_at = CASE WHEN CAST(:error AS TEXT) IS NULL THEN NULL ELSE COALESCE(failing_at, unstuck_now()) END,
       failures = CASE WHEN CAST(:error AS TEXT) IS NULL THEN 0 ELSE failures + 1 END,
       error = CAST(:error AS TEXT)
 WHERE rule = :rule AND turn_at = :turn_at AND by = :by

-- name: open_causes
SELECT cause, subject, told_at FROM unstuck_alerts WHERE rule = :rule AND closed_at IS NULL ORDER BY cause LIMIT :most

-- name: lock_open_alerts
-- Of those that somebody holds nothing is said: they stay as they are.
SELECT id, cause FROM unstuck_alerts
 WHERE rule = :rule AND closed_at IS NULL AND cause {in :causes TEXT}
 ORDER BY id
 {lock FOR UPDATE SKIP LOCKED}

-- name: see_alerts
UPDATE unstuck_alerts
   SET seen_at = unstuck_now(),
       severity = CASE WHEN f.message IS NULL THEN unstuck_alerts.severity ELSE f.severity END,
       subject = f.subject,
       count = f.count,
       message = COALESCE(f.message, unstuck_alerts.message),
       told_at = CASE WHEN f.message IS NULL THEN unstuck_alerts.told_at ELSE unstuck_now() END
  FROM {rows :rows AS f (id BIGINT, severity TEXT, subject TEXT, count BIGINT, message TEXT)}
 WHERE unstuck_alerts.id = f.id

-- name: open_alert
-- One of a cause at a time, whoever looks. If the last one of it was muted, so is this.
INSERT INTO unstuck_alerts (rule, cause, tenant, workflow, severity, title, subject, message, link, count, opened_at, seen_at, told_at, muted_until, muted_by)
SELECT :rule, :cause, :tenant, :workflow, :severity, :title, :subject, :message, :link, CAST(:count AS BIGINT), now.at, now.at, now.at,
       (SELECT MAX(m.muted_until) FROM unstuck_alerts m WHERE m.rule = :rule AND m.cause = :cause AND m.muted_until > now.at),
       (SELECT m.muted_by FROM unstuck_alerts m WHERE m.rule = :rule AND m.cause = :cause AND m.muted_until > now.at ORDER BY m.id DESC LIMIT 1)
  FROM (SELECT unstuck_now() AS at) AS now
 WHERE TRUE
ON CONFLICT (rule, cause) WHERE closed_at IS NULL DO NOTHING
RETURNING id, muted_until

-- name: link_alert
UPDATE unstuck_alerts SET notification = :notification WHERE id = :number

-- name: closable_alerts
-- Not found in the round that began then, nor for so long.
SELECT id FROM unstuck_alerts
 WHERE rule = :rule AND closed_at IS NULL AND seen_at < :began AND seen_at <= (SELECT unstuck_now()) - CAST(:after AS BIGINT)
 ORDER BY id
 LIMIT :most

-- name: close_alert
UPDATE unstuck_alerts
   SET closed_at = unstuck_now()
 WHERE id {among}
       SELECT id FROM unstuck_alerts
        WHERE id = :number AND closed_at IS NULL AND seen_at < :began AND seen_at <= (SELECT unstuck_now()) - CAST(:after AS BIGINT)
          {lock FOR UPDATE SKIP LOCKED}
       {end}
RETURNING *, CASE WHEN muted_until > unstuck_now() THEN 1 ELSE 0 END AS is_muted

-- name: note_notification
UPDATE unstuck_notifications
   SET acked_at = unstuck_now(), acked_by = :by
 WHERE id {among}
       SELECT id FROM unstuck_notifications WHERE id = :number AND acked_at IS NULL {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: alert
SELECT * FROM unstuck_alerts WHERE id = :number AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))

-- name: open_alerts
SELECT * FROM unstuck_alerts
 WHERE closed_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:rule AS TEXT) IS NULL OR rule = CAST(:rule AS TEXT)) AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: alerts
SELECT * FROM unstuck_alerts
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:rule AS TEXT) IS NULL OR rule = CAST(:rule AS TEXT)) AND id < :before
 ORDER BY id DESC
 LIMIT :most

-- name: ack_alert
-- The first to take note is kept.
UPDATE unstuck_alerts
   SET acked_at = unstuck_now(), acked_by = :by
 WHERE id = :number AND acked_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))

-- name: mute_alert
UPDATE unstuck_alerts
   SET muted_until = CASE WHEN CAST(:seconds AS BIGINT) IS NULL THEN NULL ELSE unstuck_now() + CAST(:seconds AS BIGINT) END, muted_by = CAST(:by AS TEXT)
 WHERE id = :number

-- name: unmute_cause
UPDATE unstuck_alerts SET muted_until = NULL, muted_by = NULL
 WHERE rule = :rule AND cause = :cause AND muted_until IS NOT NULL

-- name: count_alerts
SELECT rule, severity, COUNT(*) AS alerts, MIN(opened_at) AS since_at,
       COALESCE(SUM(CASE WHEN muted_until > (SELECT unstuck_now()) THEN 1 ELSE 0 END), 0) AS muted
  FROM unstuck_alerts
 WHERE closed_at IS NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
 GROUP BY rule, severity

-- name: forget_alerts
-- Not one that is muted still: the next of its cause must be.
DELETE FROM unstuck_alerts
 WHERE id {among}
       SELECT id FROM unstuck_alerts
        WHERE closed_at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) AND (muted_until IS NULL OR muted_until <= (SELECT unstuck_now()))
        ORDER BY closed_at, id LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: add_recoveries
INSERT INTO unstuck_recoveries (at, worker, name, tenant, workflow, jobs)
SELECT unstuck_now(), worker, name, tenant, workflow, jobs
  FROM {rows :rows AS r (worker BIGINT, name TEXT, tenant TEXT, workflow TEXT, jobs BIGINT)}

-- name: forget_recoveries
DELETE FROM unstuck_recoveries
 WHERE id {among}
       SELECT id FROM unstuck_recoveries WHERE at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) ORDER BY at, id LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}
       {end}
