-- A worker of another machine whose last renewal was by the clock as it is now, and not by what the one who asks expected: of a leap forward it
-- is later than that, of one backward not in the future. When the clock has really leapt its renewal fails first.
SELECT w.id
  FROM unstuck_workers w
 WHERE w.ended_at IS NULL AND w.boot_id <> :boot_id AND w.lease_until > unstuck_now() AND w.beat_at <= unstuck_now()
   AND w.beat_at - w.started_at > :settled
   AND (w.beat_at > CAST(:expected AS BIGINT) + :tolerance OR unstuck_now() < CAST(:expected AS BIGINT))
 LIMIT 1
