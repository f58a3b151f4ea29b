-- Workflows whose jobs are made of the ends of others.

-- name: registered_followers
SELECT workflow, code_version, app, body FROM unstuck_followers WHERE workflow {in :names TEXT} AND code_version {in :versions TEXT} AND tenant = :tenant

-- name: set_follower
INSERT INTO unstuck_followers (workflow, code_version, tenant, app, body)
VALUES (:workflow, :code_version, :tenant, :app, :body)
ON CONFLICT (workflow, code_version, tenant) DO UPDATE SET app = excluded.app, body = excluded.body

-- name: drop_follower
DELETE FROM unstuck_followers WHERE workflow = :workflow AND code_version = :code_version AND tenant = :tenant

-- name: are_followers
SELECT EXISTS (SELECT 1 FROM unstuck_followers) AS are_some

-- name: followers
-- By the version that the doors go by. Of an app whose workers live, only what they have: it may be removed from the code.
SELECT f.workflow, f.tenant, f.app, f.body, v.is_live,
       EXISTS (SELECT 1 FROM unstuck_workers w
                WHERE w.ended_at IS NULL AND w.lease_until > (SELECT unstuck_now()) AND w.state = 'active' AND {json w.serves} ->> 'app' = f.app) AS is_app_live
  FROM (SELECT w.name, w.code_version, w.tenant, w.is_live,
               ROW_NUMBER() OVER (PARTITION BY w.name, w.tenant ORDER BY w.is_live DESC, w.registered_at DESC, w.seen_at DESC, w.code_version DESC) AS place
          FROM unstuck_versions w
         WHERE w.name IN (SELECT workflow FROM unstuck_followers)) AS v
  JOIN unstuck_followers f ON f.workflow = v.name AND f.code_version = v.code_version AND f.tenant = v.tenant
 WHERE v.place = 1
 ORDER BY f.workflow, f.tenant

-- name: forget_followers
-- Of versions that are forgotten; but for those that somebody holds.
DELETE FROM unstuck_followers
 WHERE {postgres ctid = ANY (ARRAY(}{sqlite (workflow, code_version, tenant) IN (}
       SELECT {postgres f.ctid}{sqlite f.workflow, f.code_version, f.tenant}
         FROM unstuck_followers f
        WHERE NOT EXISTS (SELECT 1 FROM unstuck_workflows w WHERE w.name = f.workflow AND w.code_version = f.code_version AND w.tenant = f.tenant)
          {lock FOR UPDATE OF f SKIP LOCKED}){postgres )}

-- name: reading_ends
SELECT cursor, since, holder, held_until, unstuck_now() AS now FROM unstuck_ends_read

-- name: begin_reading_ends
-- A row that is there stays as it is, and is locked: whoever is about to take it away does so before, or sees who follows.
INSERT INTO unstuck_ends_read (one, cursor, since, holder, held_until) VALUES (1, :cursor, unstuck_now(), '', 0)
ON CONFLICT (one) DO UPDATE SET one = excluded.one

-- name: lock_ends
SELECT cursor FROM unstuck_ends_read {lock FOR UPDATE SKIP LOCKED}

-- name: hold_ends
-- Nothing, too, where somebody has the row: he is waited for by nobody.
UPDATE unstuck_ends_read
   SET holder = :holder, held_until = unstuck_now() + CAST(:hold AS BIGINT)
 WHERE one {among}
       SELECT one FROM unstuck_ends_read
        WHERE cursor = :cursor AND (holder = :holder OR held_until <= (SELECT unstuck_now()))
          {lock FOR UPDATE SKIP LOCKED}
       {end}

-- name: move_ends
UPDATE unstuck_ends_read
   SET cursor = :cursor, held_until = 0
 WHERE one {among} SELECT one FROM unstuck_ends_read WHERE holder = :holder AND cursor = :after {lock FOR UPDATE SKIP LOCKED} {end}

-- name: stop_reading_ends
DELETE FROM unstuck_ends_read

-- name: end_facts
-- What is known of these runs. is_made: of an end, or by a job below one that was.
WITH RECURSIVE asked AS (
    SELECT j.id, j.uid, a.run
      FROM {rows :rows AS a (uid TEXT, run BIGINT)}
      JOIN unstuck_jobs AS j ON j.uid = a.uid
), above AS (
    SELECT id AS job, id AS place FROM asked
    UNION
    SELECT above.job, c.parent FROM above JOIN unstuck_children AS c ON c.child = above.place
), ended AS (
    SELECT a.id, a.uid, a.run, d.result FROM asked AS a JOIN unstuck_done AS d ON d.job = a.id AND d.run = a.run
    UNION ALL
    SELECT a.id, a.uid, a.run, p.result FROM asked AS a JOIN unstuck_past_runs AS p ON p.job = a.id AND p.run = a.run
)
SELECT e.uid, e.run, CASE WHEN {bytes e.result} <= CAST(:most AS BIGINT) THEN e.result END AS result,
       CASE WHEN {bytes e.result} > CAST(:most AS BIGINT) THEN 1 ELSE 0 END AS is_large,
       CASE WHEN EXISTS (SELECT 1 FROM above JOIN unstuck_jobs AS p ON p.id = above.place
                          WHERE above.job = e.id AND p.made_by = 'end') THEN 1 ELSE 0 END AS is_made
  FROM ended AS e

-- name: follow_end
INSERT INTO unstuck_ends_followed (job, run, hook, at, made, reason, ended, again_at)
VALUES (:job, :run, :follower, unstuck_now(), CAST(:made AS TEXT), CAST(:reason AS TEXT), CAST(:ended AS TEXT), unstuck_now() + CAST(:again AS BIGINT))
ON CONFLICT (job, run, hook) DO NOTHING

-- name: follow_late_end
UPDATE unstuck_ends_followed
   SET made = CAST(:made AS TEXT), reason = CAST(:reason AS TEXT), ended = NULL, again_at = NULL
 WHERE job = :job AND run = :run AND hook = :follower AND again_at IS NOT NULL

-- name: take_late_ends
-- Whoever takes one has it until it is due again: after as long as it has waited by now, within bounds. So of one
-- that is refused again, or whose taker died, nothing has to be written.
UPDATE unstuck_ends_followed
   SET again_at = unstuck_now() + CASE WHEN unstuck_now() - at < CAST(:least AS BIGINT) THEN CAST(:least AS BIGINT)
                                       WHEN unstuck_now() - at > CAST(:longest AS BIGINT) THEN CAST(:longest AS BIGINT)
                                       ELSE unstuck_now() - at END
 WHERE {postgres ctid = ANY (ARRAY(}{sqlite (job, run, hook) IN (}
       SELECT {postgres f.ctid}{sqlite f.job, f.run, f.hook}
         FROM unstuck_ends_followed f
        WHERE f.again_at <= (SELECT unstuck_now())
        ORDER BY f.again_at LIMIT :most
          {lock FOR UPDATE SKIP LOCKED}){postgres )}
RETURNING job, run, hook, ended, at, unstuck_now() AS now

-- name: has_late_ends
SELECT MIN(again_at) IS NOT NULL AS are_some FROM unstuck_ends_followed WHERE again_at <= (SELECT unstuck_now())

-- name: waiting_ends
-- Those that were put off, the first to be tried again first.
SELECT job, hook, at, reason FROM unstuck_ends_followed WHERE again_at IS NOT NULL ORDER BY again_at LIMIT :most

-- name: forget_followed_ends
DELETE FROM unstuck_ends_followed
 WHERE {postgres ctid = ANY (ARRAY(}{sqlite (job, run, hook) IN (}
       SELECT {postgres f.ctid}{sqlite f.job, f.run, f.hook}
         FROM unstuck_ends_followed f
        WHERE f.at <= (SELECT unstuck_now()) - CAST(:retention AS BIGINT) AND f.again_at IS NULL
        ORDER BY f.at LIMIT :batch OFFSET :past
          {lock FOR UPDATE SKIP LOCKED}){postgres )}
