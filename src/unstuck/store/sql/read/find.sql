SELECT uid
  FROM unstuck_jobs
 WHERE uid >= :prefix AND uid < :beyond
   AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND {within queue workflow}
 ORDER BY uid
 LIMIT :most
