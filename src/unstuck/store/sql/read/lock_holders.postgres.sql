-- Sessions that hold rows or tables of ours for longer than :longer, the oldest first. It reads no table of ours: one of them may be
-- locked even against reading. A session of which this user may see nothing is told of while somebody waits for it.
-- Sessions of ours, known by the mark of their statements or by their name, are at work for as long as a call may take, on a busy machine
-- too: they are told of after :ours. What is kept without a transaction (an advisory lock of a session) is as old as its last statement.
WITH ours AS MATERIALIZED (
    SELECT c.oid, c.relname
      FROM pg_class c
     WHERE c.relkind IN ('r', 'p') AND c.relname LIKE 'unstuck\_%'
       AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('unstuck_jobs'))
), lock AS MATERIALIZED (
    SELECT locktype, relation, classid, objid, objsubid, mode, pid, granted
      FROM pg_locks
     WHERE database IS NULL OR database = (SELECT oid FROM pg_database WHERE datname = current_database())
), held AS (
    SELECT lock.pid, ours.relname AS name
      FROM lock
      JOIN ours ON ours.oid = lock.relation
     WHERE lock.granted AND lock.locktype = 'relation'
       AND lock.mode IN ('RowShareLock', 'RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
     UNION
    -- Who only reads holds up nobody, but for somebody who wants the whole table (an ALTER TABLE), and with him all who came later.
    SELECT lock.pid, ours.relname
      FROM lock
      JOIN ours ON ours.oid = lock.relation
     WHERE lock.granted AND lock.locktype = 'relation'
       AND EXISTS (SELECT 1 FROM lock AS other
                    WHERE other.locktype = 'relation' AND other.relation = lock.relation AND other.mode = 'AccessExclusiveLock' AND NOT other.granted)
     UNION
    -- Who has it shared keeps no claim out, but everybody who wants to shut it. All others (migrations, the addresses of events) are
    -- ours as soon as a session of ours waits for them.
    SELECT lock.pid, CASE WHEN lock.classid = 0 AND lock.objid = 1970173813 THEN 'the guard' ELSE 'an advisory lock' END
      FROM lock
     WHERE lock.granted AND lock.locktype = 'advisory'
       AND (lock.classid = 0 AND lock.objid = 1970173813
            OR EXISTS (SELECT 1
                         FROM lock AS other
                         JOIN pg_stat_activity waiter ON waiter.pid = other.pid
                        WHERE NOT other.granted AND other.locktype = 'advisory' AND other.classid = lock.classid AND other.objid = lock.objid
                          AND other.objsubid = lock.objsubid AND starts_with(waiter.query, '/* unstuck */')))
), kept AS MATERIALIZED (
    SELECT waiter.pid, pg_blocking_pids(waiter.pid) AS by
      FROM (SELECT DISTINCT pid FROM lock WHERE NOT granted LIMIT 100) AS waiter
), session AS MATERIALIZED (
    SELECT held.pid, ARRAY_AGG(DISTINCT CAST(held.name AS TEXT)) AS held,
           (SELECT COUNT(*) FROM kept WHERE held.pid = ANY (kept.by)) AS waiting
      FROM held
     WHERE held.pid IS DISTINCT FROM pg_backend_pid()
     GROUP BY held.pid
)
SELECT session.pid, session.held, session.waiting, a.application_name, a.usename, a.state, a.wait_event,
       CAST(EXTRACT(EPOCH FROM clock_timestamp() - COALESCE(a.xact_start, a.state_change)) * 1000000 AS BIGINT) AS held_for
  FROM session
  LEFT JOIN pg_stat_activity a ON a.pid = session.pid
 WHERE (session.pid IS NULL OR a.pid IS NOT NULL)
   AND COALESCE(clock_timestamp() - COALESCE(a.xact_start, a.state_change)
                >= CASE WHEN starts_with(a.query, '/* unstuck */') OR starts_with(a.application_name, 'unstuck ')
                        THEN CAST(:ours AS BIGINT) ELSE CAST(:longer AS BIGINT) END * INTERVAL '1 microsecond',
                session.pid IS NULL OR session.waiting > 0)
 ORDER BY COALESCE(a.xact_start, a.state_change), session.pid
 LIMIT 20
