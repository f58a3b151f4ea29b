-- FOR KEY SHARE: waits for nobody but a sweep that forgets one of them at this instant, and keeps the next sweep away.
SELECT j.id, j.tenant, j.uid
  FROM json_to_recordset(CAST(:rows AS json)) AS r (tenant TEXT, uid TEXT)
  JOIN unstuck_jobs j ON j.uid = r.uid AND j.tenant = r.tenant
 ORDER BY j.id
   FOR KEY SHARE OF j
