UPDATE unstuck_workers
   SET beat_at = unstuck_now(), lease_until = unstuck_now() + :lease, state = :state,
       info = COALESCE(CAST(:info AS TEXT), info)
 WHERE id = :worker AND lease_until > unstuck_now() AND state NOT IN ('lost', 'fenced', 'gone')
RETURNING lease_until, state
