-- What a forgotten job leaves.

-- name: forget_steps
DELETE FROM unstuck_steps WHERE job {in :jobs BIGINT}

-- name: forget_waits
DELETE FROM unstuck_waits WHERE job {in :jobs BIGINT}

-- name: forget_children
-- By the parent: as long as it is kept, a spawn that is repeated must find its child. Without these rows the children may go too.
DELETE FROM unstuck_children WHERE parent {in :jobs BIGINT}

-- name: forget_usage
DELETE FROM unstuck_usage WHERE job {in :jobs BIGINT}

-- name: forget_parts
DELETE FROM unstuck_parts WHERE job {in :jobs BIGINT}

-- name: forget_dependencies
DELETE FROM unstuck_dependencies WHERE job = :job

-- name: forget_unclaimed_events
-- SKIP LOCKED: one that is taken at this instant is not waited for.
DELETE FROM unstuck_unclaimed_events
 WHERE id {among} SELECT id FROM unstuck_unclaimed_events WHERE expires_at <= (SELECT unstuck_now())
                        ORDER BY expires_at LIMIT :batch OFFSET :past {lock FOR UPDATE SKIP LOCKED}{end}

-- name: forget_event_ids
-- One that somebody is just renewing is not waited for.
DELETE FROM unstuck_event_ids
 WHERE {row} {among} SELECT {row} FROM unstuck_event_ids WHERE expires_at <= (SELECT unstuck_now())
                        ORDER BY expires_at LIMIT :batch OFFSET :past {lock FOR UPDATE SKIP LOCKED}{end}

-- name: forget_unclaimed_of_jobs
-- By the jobs' own names, while they are still there.
DELETE FROM unstuck_unclaimed_events
 WHERE id {among}
       SELECT sent.id
         FROM unstuck_jobs j
         {all_by_key unstuck_unclaimed_events AS sent ON sent.tenant = j.tenant AND sent.address = 'job:' || j.uid}
        WHERE j.id {in :jobs BIGINT}
       {end}
