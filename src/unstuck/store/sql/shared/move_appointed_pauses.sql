UPDATE unstuck_pauses
   SET until_at = appointed + unstuck_ahead()
 WHERE (kind, name, tenant) IN (SELECT p.kind, p.name, p.tenant
                                  FROM unstuck_pauses p
                                 WHERE p.until_at <> p.appointed + (SELECT unstuck_ahead())
                                 ORDER BY p.kind, p.name, p.tenant {lock FOR NO KEY UPDATE SKIP LOCKED})
