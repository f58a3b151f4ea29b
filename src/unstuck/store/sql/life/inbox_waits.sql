SELECT seq FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT 1
