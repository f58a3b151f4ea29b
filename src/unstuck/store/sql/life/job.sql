SELECT * FROM unstuck_job_rows WHERE uid = :uid AND tenant = :tenant
