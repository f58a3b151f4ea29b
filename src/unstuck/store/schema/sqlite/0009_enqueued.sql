-- enqueued: how many jobs were stored. enqueued_to: the number of the last one that is in the totals; those of before this migration are not.
ALTER TABLE unstuck_totals ADD COLUMN enqueued INTEGER NOT NULL DEFAULT 0;
ALTER TABLE unstuck_counted ADD COLUMN enqueued_to INTEGER NOT NULL DEFAULT 0;
UPDATE unstuck_counted SET enqueued_to = COALESCE((SELECT MAX(id) FROM unstuck_jobs), 0);
