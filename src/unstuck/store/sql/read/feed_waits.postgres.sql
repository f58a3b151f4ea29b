-- Since when the first event that has no place in the feed yet has been there.
SELECT e.at AS since_at
  FROM unstuck_events e
 WHERE e.xid >= (SELECT since FROM unstuck_sequencer) AND e.id > (SELECT restored FROM unstuck_sequencer)
 ORDER BY e.xid
 LIMIT 1
