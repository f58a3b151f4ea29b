-- Up to :most jobs of these routes that wait for a time, in no order; IN and INDEXED BY as in counts.
SELECT job AS number
  FROM unstuck_timers INDEXED BY unstuck_timers_route
 WHERE route IN (SELECT value FROM json_each(:routes)) AND kind = 'start'
 LIMIT :most
