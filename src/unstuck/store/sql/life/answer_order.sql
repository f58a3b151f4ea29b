UPDATE unstuck_orders
   SET done_at = unstuck_now(), answer = :answer, is_refused = :refused
 WHERE id = :number AND done_at IS NULL
