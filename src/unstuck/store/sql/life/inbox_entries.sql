SELECT seq, target, job FROM unstuck_inbox WHERE seq > :after ORDER BY seq LIMIT :batch
