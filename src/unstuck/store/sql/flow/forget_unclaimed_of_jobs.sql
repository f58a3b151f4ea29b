-- By the jobs' own names, while they are still there.
DELETE FROM unstuck_unclaimed_events
 WHERE id {among}
       SELECT sent.id
         FROM unstuck_jobs j
         {all_by_key unstuck_unclaimed_events AS sent ON sent.tenant = j.tenant AND sent.address = 'job:' || j.uid}
        WHERE j.id {in :jobs BIGINT}
       {end}
