WITH clock AS MATERIALIZED (
    SELECT unstuck_now() AS now
)
SELECT w.lease_until > clock.now AND w.state NOT IN ('lost', 'fenced', 'gone') AS stands, clock.now AS now
  FROM unstuck_workers w, clock
 WHERE w.id = :worker
