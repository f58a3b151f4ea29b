-- A key lives until its end and never less than its job.
DELETE FROM unstuck_keys
 WHERE (tenant, key) IN (SELECT k.tenant, k.key
                           FROM unstuck_keys k
                          WHERE k.expires_at <= (SELECT unstuck_now())
                            AND NOT EXISTS (SELECT 1 FROM unstuck_jobs j
                                             WHERE j.uid = k.job
                                               AND NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id))
                          ORDER BY k.expires_at
                          LIMIT :batch OFFSET :past)
