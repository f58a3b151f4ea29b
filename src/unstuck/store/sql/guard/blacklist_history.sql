SELECT * FROM unstuck_blacklist
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
   AND (CAST(:workflow AS TEXT) IS NULL OR workflow = CAST(:workflow AS TEXT))
   AND id < :before
 ORDER BY id DESC
 LIMIT :most
