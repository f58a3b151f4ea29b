-- For the rest of this transaction: what somebody holds is left to him, and is there the next time too.
SELECT set_config('lock_timeout', '100', true)
