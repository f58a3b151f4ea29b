-- One statement, so that nobody who stops in the middle keeps the sequencer's row locked.
WITH gone AS (
    DELETE FROM unstuck_feed
     WHERE last = ANY (ARRAY(
           SELECT oldest.last
             FROM (SELECT last, at FROM unstuck_feed ORDER BY last LIMIT :batch) AS oldest
            WHERE oldest.at <= (SELECT unstuck_now() - :kept)))
    RETURNING last
)
UPDATE unstuck_sequencer
   SET floor = GREATEST(floor, (SELECT MAX(last) FROM gone))
 WHERE EXISTS (SELECT 1 FROM gone)
RETURNING (SELECT COUNT(*) FROM gone) AS gone
