-- Of the next :batch positions those whose time is over.
SELECT MAX(id) AS last, COUNT(*) AS old
  FROM (SELECT id, at FROM unstuck_events WHERE id > (SELECT floor FROM unstuck_sequencer) ORDER BY id LIMIT :batch)
 WHERE at <= unstuck_now() - :kept
