-- Which of these duties of the janitor have anything to look for, in one question: an idle worker asks it instead of theirs. Never less than a
-- duty would find; what is set aside is anybody's. MIN, and not whether there is a row: that is found by the index, whatever the table was full of.
SELECT (SELECT MIN(seq) FROM unstuck_inbox) IS NOT NULL AS inbox,
       (SELECT MIN(left_at) FROM unstuck_children WHERE left_at IS NOT NULL) IS NOT NULL AS children,
       (SELECT MIN(id) FROM unstuck_bulks WHERE state = 'RUNNING') IS NOT NULL AS bulks,
       EXISTS (SELECT 1 FROM unstuck_workers WHERE ended_at IS NULL AND substr(incarnation, 9, 1) = '.') AS offers,
       EXISTS (SELECT 1 FROM unstuck_body_marks) AS body_marks,
       (SELECT MIN(id) FROM unstuck_blacklist) IS NOT NULL AS guard,
       (SELECT MIN(position) FROM unstuck_webhooks WHERE position IS NOT NULL) IS NOT NULL AS webhooks,
       EXISTS (SELECT 1 FROM unstuck_followers) OR EXISTS (SELECT 1 FROM unstuck_ends_read)
       OR (SELECT MIN(again_at) FROM unstuck_ends_followed WHERE again_at IS NOT NULL) IS NOT NULL AS ends,
       EXISTS (SELECT 1 FROM unstuck_quarantine) AS aside
