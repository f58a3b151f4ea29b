-- Up to :most jobs of these routes that ended in a state, in no order; IN and INDEXED BY as in counts.
SELECT job AS number
  FROM unstuck_done INDEXED BY unstuck_done_route
 WHERE route IN (SELECT value FROM json_each(:routes)) AND state = :state
 LIMIT :most
