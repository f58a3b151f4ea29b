SELECT uid FROM unstuck_jobs WHERE uid >= :prefix AND uid < :beyond AND tenant = :tenant ORDER BY uid LIMIT :most
