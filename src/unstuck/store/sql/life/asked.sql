SELECT job, token, claim, request, request_reason
  FROM unstuck_running
 WHERE worker = :worker AND request IS NOT NULL
