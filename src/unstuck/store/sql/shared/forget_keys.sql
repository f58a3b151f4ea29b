-- A key lives for its retention and never less than its job. The age is asked for twice: while this waits for a submit that
-- takes the key over, the row becomes young, and only conditions on the row itself are looked at again.
DELETE FROM unstuck_keys
 WHERE created_at <= (SELECT unstuck_now() - :retention)
   AND (tenant, key) IN (SELECT k.tenant, k.key
                           FROM unstuck_keys k
                          WHERE k.created_at <= (SELECT unstuck_now() - :retention)
                            AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                                             WHERE j.uid = k.job
                                               AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
                          ORDER BY k.created_at
                          LIMIT :batch)
