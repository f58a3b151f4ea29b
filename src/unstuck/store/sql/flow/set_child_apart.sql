-- It stays known as a child, and gives its name to the one that takes its place. By the name: the job itself may be forgotten.
UPDATE unstuck_children SET ordinal = -child WHERE parent = :parent AND name = :name AND ordinal = :ordinal
