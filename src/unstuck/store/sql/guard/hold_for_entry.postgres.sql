WITH held AS (
    SELECT entry, job FROM json_to_recordset(CAST(:rows AS json)) AS r (entry BIGINT, job BIGINT)
), marked AS (
    UPDATE unstuck_jobs SET on_hold = 1 WHERE id = ANY (ARRAY(SELECT job FROM held))
)
INSERT INTO unstuck_blacklist_held (entry, job)
SELECT entry, job FROM held
ON CONFLICT (entry, job) DO NOTHING
