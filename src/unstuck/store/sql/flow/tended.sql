UPDATE unstuck_children SET left_at = NULL WHERE child = :child
