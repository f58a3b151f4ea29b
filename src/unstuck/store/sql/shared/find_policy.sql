SELECT id FROM unstuck_policies WHERE digest = :digest
