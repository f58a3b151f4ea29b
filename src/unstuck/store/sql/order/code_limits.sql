SELECT name, set_by, concurrency, rate, per_us, code_concurrency, code_rate, code_per_us
  FROM unstuck_limits
 WHERE kind = 'workflow' AND tenant = '*' AND name {in :names TEXT}
