-- An operator's own stays; when it is lifted there is nothing to come back.
UPDATE unstuck_limits
   SET code_concurrency = NULL, code_rate = NULL, code_per_us = NULL
 WHERE kind = 'workflow' AND name = :name AND tenant = '*' AND set_by <> :by AND (code_concurrency IS NOT NULL OR code_rate IS NOT NULL)
