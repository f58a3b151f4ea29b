-- For each of :rows the oldest event that is meant for it; `turn`: so many others of these rows are before it at the same address. The addresses
-- are locked, so nobody else takes an event from them; one that is being forgotten is passed by.
WITH found AS MATERIALIZED (
    SELECT r.job, l.id
      FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, tenant TEXT, address TEXT, event TEXT, run BIGINT, turn BIGINT)
     CROSS JOIN LATERAL (
           SELECT l.id
             FROM unstuck_unclaimed_events l
            WHERE l.tenant = r.tenant AND l.address = r.address AND l.event = r.event
              AND (l.run IS NULL OR l.run = r.run) AND l.expires_at > (SELECT unstuck_now())
            ORDER BY l.id
           OFFSET r.turn
            LIMIT 1
              FOR UPDATE SKIP LOCKED) AS l
), taken AS (
    DELETE FROM unstuck_unclaimed_events WHERE id = ANY (ARRAY(SELECT id FROM found)) RETURNING id, payload, by
)
SELECT found.job, taken.payload, taken.by FROM taken JOIN found ON found.id = taken.id
