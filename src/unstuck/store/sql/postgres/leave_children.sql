-- :rows are parents that ended badly; every = 1: whatever was said about them. Who has ended already is left in peace.
-- LATERAL ... OFFSET 0: whatever the planner thinks of :rows, it reads no more than these parents' own children.
UPDATE unstuck_children
   SET left_at = unstuck_now()
 WHERE child = ANY (ARRAY(
       SELECT own.child
         FROM json_to_recordset(CAST(:rows AS json)) AS r (job BIGINT, every SMALLINT)
        CROSS JOIN LATERAL (
              SELECT c.child
                FROM unstuck_children c
               WHERE c.parent = r.job
                 AND c.left_at IS NULL
                 AND (r.every = 1 OR c.on_end = 'cancel')
                 AND (SELECT 1 FROM unstuck_done e WHERE e.job = c.child) IS NULL
              OFFSET 0) AS own))
RETURNING parent
