-- There is one writer: nothing to lock.
SELECT tenant FROM unstuck_breakers WHERE workflow = :workflow AND (:tenant IS NULL OR tenant = :tenant)
