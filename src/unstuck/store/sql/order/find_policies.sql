SELECT d.id, d.digest
  FROM {rows :rows AS r (digest TEXT)}
  {by_key unstuck_policies AS d ON d.digest = r.digest}
