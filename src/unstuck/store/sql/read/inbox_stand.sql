SELECT (SELECT at FROM unstuck_inbox WHERE seq > 0 ORDER BY seq LIMIT 1) AS since_at,
       (SELECT COUNT(*) FROM (SELECT 1 AS one FROM unstuck_inbox WHERE seq > 0 ORDER BY seq LIMIT :ceiling) AS few) AS entries
