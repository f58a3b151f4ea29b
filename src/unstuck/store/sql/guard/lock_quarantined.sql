-- Those of these items that are set aside and whom nobody tries again at this instant: until the commit nobody does.
SELECT item
  FROM unstuck_quarantine
 WHERE duty = :duty AND item {in :items BIGINT}
 ORDER BY item
   {lock FOR SHARE SKIP LOCKED}
