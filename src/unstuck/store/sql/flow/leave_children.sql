-- :rows are parents that ended badly; every = 1: whatever was said about them. Who has ended already is left in peace.
UPDATE unstuck_children
   SET left_at = unstuck_now()
 WHERE child {among}
       SELECT own.child
         FROM {rows :rows AS r (job BIGINT, every SMALLINT)}
         {all_by_key unstuck_children AS own ON own.parent = r.job AND own.left_at IS NULL AND (r.every = 1 OR own.on_end = 'cancel')
              AND (SELECT 1 FROM unstuck_done e WHERE e.job = own.child) IS NULL}
       {end}
RETURNING parent
