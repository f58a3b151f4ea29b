-- Of one tenant ('*' is one here), or (NULL) of all; or this one alone.
UPDATE unstuck_blacklist
   SET removed_at = unstuck_now(), removed_by = :by, probe = NULL
 WHERE workflow = :workflow AND removed_at IS NULL
   AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
   AND (CAST(:entry AS BIGINT) IS NULL OR id = CAST(:entry AS BIGINT))
RETURNING *
