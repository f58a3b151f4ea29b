-- Up to :most jobs of these routes that wait for a worker, a time or their turn, in no order; IN and INDEXED BY as in counts.
SELECT number
  FROM (SELECT job AS number FROM unstuck_ready WHERE route IN (SELECT value FROM json_each(:routes))
         UNION ALL
        SELECT job
          FROM unstuck_timers INDEXED BY unstuck_timers_route
         WHERE route IN (SELECT value FROM json_each(:routes)) AND kind = 'start'
         UNION ALL
        SELECT job
          FROM unstuck_line INDEXED BY unstuck_line_route
         WHERE route IN (SELECT value FROM json_each(:routes)))
 LIMIT :most
