SELECT body FROM unstuck_policies WHERE id = :policy
