-- News that are there.

-- name: published
SELECT number, expires_at FROM unstuck_news WHERE tenant = :tenant AND key = :key

-- name: holds_attempt
SELECT 1 AS found FROM unstuck_running WHERE job = :job AND token = :token AND claim = :claim

-- name: old_news
-- Of the oldest :batch those that are older than the feed, which is kept for longer where webhooks follow it; and those to which their publisher gave less time.
SELECT number FROM (SELECT number, told_at FROM unstuck_news WHERE number > 0 ORDER BY number LIMIT :batch OFFSET :past) AS oldest
 WHERE told_at <= (SELECT unstuck_now() - CASE WHEN EXISTS (SELECT 1 FROM unstuck_webhooks WHERE position IS NOT NULL)
                                                THEN {greatest}(CAST(:kept AS BIGINT), :held) ELSE :kept END)
 UNION
SELECT number FROM (SELECT number FROM unstuck_news
                     WHERE expires_at <= (SELECT unstuck_now()) ORDER BY expires_at, number LIMIT :batch OFFSET :past) AS expired
 LIMIT :batch

-- name: surplus_from
-- Of each tenant that has published more than :most the newest that is too many: a step of the index per tenant, and per one that is kept.
WITH RECURSIVE who (tenant) AS (
    SELECT MIN(tenant) FROM unstuck_news WHERE by IS NOT NULL
     UNION ALL
    SELECT (SELECT MIN(n.tenant) FROM unstuck_news n WHERE n.by IS NOT NULL AND n.tenant > who.tenant) FROM who WHERE who.tenant IS NOT NULL
), edge AS (
    SELECT who.tenant, (SELECT n.number FROM unstuck_news n
                         WHERE n.by IS NOT NULL AND n.tenant = who.tenant ORDER BY n.number DESC LIMIT 1 OFFSET :most) AS upto
      FROM who WHERE who.tenant IS NOT NULL
)
SELECT tenant, upto FROM edge WHERE upto IS NOT NULL

-- name: surplus_news
-- By the index of what is published, whatever the statistics say: a walk by number would meet all other tenants' too.
SELECT number FROM unstuck_news
 WHERE by IS NOT NULL AND {exactly tenant :tenant} AND number <= :upto ORDER BY tenant, number LIMIT :batch

-- name: free_news
SELECT number FROM unstuck_news WHERE number {in :numbers BIGINT} ORDER BY number {lock FOR UPDATE SKIP LOCKED}

-- name: forget_news
DELETE FROM unstuck_news WHERE number {in :numbers BIGINT}

-- name: forget_news_events
DELETE FROM unstuck_events WHERE job = 0 AND number {in :numbers BIGINT}
