UPDATE unstuck_breakers
   SET cleared_upto = COALESCE((SELECT MAX(s.id) FROM unstuck_stucks s
                                 WHERE s.tenant = unstuck_breakers.tenant AND s.workflow = unstuck_breakers.workflow),
                               cleared_upto)
 WHERE workflow = :workflow AND (CAST(:tenant AS TEXT) IS NULL OR tenant = CAST(:tenant AS TEXT))
