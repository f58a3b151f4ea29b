SELECT id, said FROM unstuck_policies WHERE workflow = :workflow ORDER BY id
