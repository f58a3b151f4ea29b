-- Between :earliest and :latest: a renewal by a clock that has leapt would be one to the wrong time. boot_at: see leaps.
UPDATE unstuck_workers
   SET beat_at = unstuck_now(), lease_until = unstuck_now() + :lease, state = :state,
       info = COALESCE(CAST(:info AS TEXT), info), boot_at = :boot_at
 WHERE id = :worker AND lease_until > unstuck_now() AND state NOT IN ('lost', 'fenced', 'gone')
   AND unstuck_now() BETWEEN CAST(:earliest AS BIGINT) AND CAST(:latest AS BIGINT)
RETURNING lease_until, state, beat_at AS now
