-- What a worker of this boot saw last. A look at all of them, once in a worker's life.
SELECT beat_at, boot_at FROM unstuck_workers WHERE boot_id = :boot_id AND boot_at IS NOT NULL ORDER BY beat_at DESC LIMIT 1
