SELECT d.id, d.digest
  FROM json_each(:rows) AS r
  CROSS JOIN unstuck_policies d ON d.digest = r.value ->> 'digest'
