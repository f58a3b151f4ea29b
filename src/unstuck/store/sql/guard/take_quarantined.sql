-- Taken before they are tried: whoever leaves one out of a batch holds its row, so a try comes after that batch and sees all it knew.
DELETE FROM unstuck_quarantine
 WHERE duty = :duty AND item {among}
       SELECT item
         FROM unstuck_quarantine
        WHERE duty = :duty AND item {in :items BIGINT}
        ORDER BY item
          {lock FOR UPDATE SKIP LOCKED}{end}
RETURNING item
