-- The lease goes on: its bodies may live as long as it does, unless a neighbour sees that they are gone.
UPDATE unstuck_workers SET state = 'fenced', reason = :reason WHERE id = :worker AND state IN ('active', 'draining')
