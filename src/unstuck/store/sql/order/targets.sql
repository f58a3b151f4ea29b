SELECT t.id, t.tenant, t.name, t.blocked_at,
       h.uid AS head_uid,
       CASE WHEN a.job IS NOT NULL THEN 'RUNNING' ELSE COALESCE(d.state, h.state) END AS head_state,
       b.uid AS blocked_uid,
       (SELECT COUNT(*) FROM (SELECT 1 AS one FROM unstuck_line l WHERE l.target = t.id LIMIT :ceiling) AS counted) AS waiting,
       p.since_at AS paused_at, p.until_at AS paused_until, p.by AS paused_by, p.reason AS pause_reason,
       CASE WHEN EXISTS (SELECT 1 FROM unstuck_body_marks o WHERE o.target = t.id) THEN 1 ELSE 0 END AS held
  FROM unstuck_targets t
  LEFT JOIN unstuck_jobs h ON h.id = t.head
  LEFT JOIN unstuck_running a ON a.job = t.head
  LEFT JOIN unstuck_done d ON d.job = t.head
  LEFT JOIN unstuck_jobs b ON b.id = t.blocked_by
  LEFT JOIN unstuck_pauses p ON p.kind = 'target' AND p.name = t.name AND p.tenant = t.tenant
                            AND (p.until_at IS NULL OR p.until_at > (SELECT unstuck_now()))
 WHERE t.tenant = :tenant AND t.name > :after
 ORDER BY t.name
 LIMIT :most
