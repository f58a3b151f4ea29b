-- Taken before they are tried: whoever leaves one out of a batch holds its row, so a try comes after that batch and sees all it knew.
DELETE FROM unstuck_quarantine
 WHERE duty = :duty AND item = ANY (ARRAY(
       SELECT item
         FROM unstuck_quarantine
        WHERE duty = :duty AND item = ANY (CAST(:items AS BIGINT[]))
        ORDER BY item
          FOR UPDATE SKIP LOCKED))
RETURNING item
