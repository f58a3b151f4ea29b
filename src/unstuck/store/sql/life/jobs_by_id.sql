-- Of all tenants: an id is one job's.
SELECT * FROM unstuck_job_rows WHERE uid {in :uids TEXT}
