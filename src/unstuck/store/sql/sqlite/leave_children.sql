-- :rows are parents that ended badly; every = 1: whatever was said about them. Who has ended already is left in peace.
UPDATE unstuck_children
   SET left_at = unstuck_now()
 WHERE child IN (
       SELECT c.child
         FROM json_each(:rows) AS r
         CROSS JOIN unstuck_children c ON c.parent = r.value ->> 'job'
        WHERE c.left_at IS NULL
          AND (r.value ->> 'every' = 1 OR c.on_end = 'cancel')
          AND NOT EXISTS (SELECT 1 FROM unstuck_done e WHERE e.job = c.child))
RETURNING parent
