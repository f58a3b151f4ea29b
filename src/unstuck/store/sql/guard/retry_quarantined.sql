UPDATE unstuck_quarantine
   SET tried_at = 0
 WHERE (CAST(:duty AS TEXT) IS NULL OR duty = CAST(:duty AS TEXT))
   AND (CAST(:item AS BIGINT) IS NULL OR item = CAST(:item AS BIGINT))
