SELECT j.id, j.tenant, j.uid
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_jobs j ON j.uid = r.value ->> 'uid' AND j.tenant = r.value ->> 'tenant'
