DELETE FROM unstuck_orders
 WHERE id IN (SELECT id FROM unstuck_orders
               WHERE given_at <= (SELECT unstuck_now() - :retention)
               ORDER BY given_at
               LIMIT :batch)
