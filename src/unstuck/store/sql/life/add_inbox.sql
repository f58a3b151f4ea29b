INSERT INTO unstuck_inbox (target, job)
SELECT target, job FROM {rows :rows AS r (target BIGINT, job BIGINT)}
