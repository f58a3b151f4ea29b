-- One that drained, or fenced itself, keeps that word: what it still held costs its jobs nothing.
UPDATE unstuck_workers
   SET state = CASE WHEN state = 'active' THEN 'lost' ELSE state END, ended_at = COALESCE(ended_at, lease_until)
 WHERE id = :worker AND (state = 'active' OR ended_at IS NULL)
