-- With all that hangs on them, in one round trip: a thread that waits for its turn in a busy worker does so once. Tags and unclaimed
-- events are found by the jobs' own words; all parts see the same snapshot, in which the jobs are still there.
WITH events AS (DELETE FROM unstuck_events WHERE job {in :jobs BIGINT}),
     outputs AS (DELETE FROM unstuck_outputs WHERE job {in :jobs BIGINT}),
     progress AS (DELETE FROM unstuck_progress WHERE job {in :jobs BIGINT}),
     past_runs AS (DELETE FROM unstuck_past_runs WHERE job {in :jobs BIGINT}),
     tags AS (DELETE FROM unstuck_tags AS t
               USING unstuck_jobs AS j
               CROSS JOIN LATERAL json_array_elements_text(CAST(j.tags AS json)) AS tag (value)
               WHERE j.id {in :jobs BIGINT} AND t.tenant = j.tenant AND t.tag = tag.value AND t.job = j.id),
     steps AS (DELETE FROM unstuck_steps WHERE job {in :jobs BIGINT}),
     waits AS (DELETE FROM unstuck_waits WHERE job {in :jobs BIGINT}),
     unclaimed AS (DELETE FROM unstuck_unclaimed_events
                  WHERE id {among}
                        SELECT sent.id
                          FROM unstuck_jobs j
                          {all_by_key unstuck_unclaimed_events AS sent ON sent.tenant = j.tenant AND sent.address = 'job:' || j.uid}
                         WHERE j.id {in :jobs BIGINT}
                        {end}),
     children AS (DELETE FROM unstuck_children WHERE parent {in :jobs BIGINT}),
     usage AS (DELETE FROM unstuck_usage WHERE job {in :jobs BIGINT}),
     parts AS (DELETE FROM unstuck_parts WHERE job {in :jobs BIGINT}),
     letters AS (DELETE FROM unstuck_dead_letters WHERE job {in :jobs BIGINT})
DELETE FROM unstuck_jobs WHERE id {in :jobs BIGINT}
