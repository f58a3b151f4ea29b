SELECT * FROM unstuck_audit
 WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant IN (CAST(:tenant AS TEXT), '*'))
   AND (CAST(:verb AS TEXT) IS NULL OR verb = CAST(:verb AS TEXT) OR verb LIKE CAST(:verb AS TEXT) || '.%')
   AND (CAST(:subject AS TEXT) IS NULL OR subject = CAST(:subject AS TEXT))
   AND id < :before
 ORDER BY id DESC
 LIMIT :most
