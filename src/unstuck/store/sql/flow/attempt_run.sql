SELECT run FROM unstuck_running WHERE job = :job AND token = :token AND claim = :claim
