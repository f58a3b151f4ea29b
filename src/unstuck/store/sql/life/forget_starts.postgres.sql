-- Of limits that are gone too. What a longer window has come to count again is looked at later.
WITH due AS MATERIALIZED (
    SELECT s.ctid AS place, s.at + l.per_us AS until_at
      FROM unstuck_starts s
      LEFT JOIN LATERAL (SELECT per_us FROM unstuck_limits WHERE id = s.limit_id LIMIT 1) AS l ON TRUE
     WHERE s.until_at <= (SELECT unstuck_now())
     ORDER BY s.until_at
     LIMIT :batch OFFSET :past
       FOR UPDATE OF s SKIP LOCKED
), later AS (
    UPDATE unstuck_starts AS s
       SET until_at = due.until_at
      FROM due
     WHERE s.ctid = due.place AND due.until_at > (SELECT unstuck_now())
)
DELETE FROM unstuck_starts
 WHERE ctid = ANY (ARRAY(SELECT place FROM due WHERE until_at IS NULL OR until_at <= (SELECT unstuck_now())))
