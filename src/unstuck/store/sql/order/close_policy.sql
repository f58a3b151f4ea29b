UPDATE unstuck_policies
   SET body = :body, timeout_us = :timeout_us, grace_us = :grace_us, workflow = NULL, said = NULL
 WHERE id = :policy
