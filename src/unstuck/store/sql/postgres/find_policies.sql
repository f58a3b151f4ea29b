SELECT d.id, d.digest
  FROM json_to_recordset(CAST(:rows AS json)) AS r (digest TEXT)
  JOIN unstuck_policies d ON d.digest = r.digest
