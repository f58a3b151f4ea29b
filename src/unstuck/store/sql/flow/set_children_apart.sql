-- They stay known as its children, and give their names to those that come.
UPDATE unstuck_children SET ordinal = -child WHERE parent = :job AND ordinal > 0
