-- The first to take note is kept.
UPDATE unstuck_notifications SET acked_at = unstuck_now(), acked_by = :by WHERE id = :number AND acked_at IS NULL
