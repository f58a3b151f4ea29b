-- Which of the rows, tables and doors that a job needs are held, and by which sessions; those whose transaction is younger than :longer
-- are ours at work. It looks and locks nothing: a row that is locked carries its locker's transaction in xmax (of several lockers a
-- multixact), and the lock that each transaction has on its own number names the session. What pg_stat_activity hides from
-- this user has no age, and counts.
WITH me AS MATERIALIZED (
    SELECT id, route, rank, target, workflow, priority, available_at, run FROM unstuck_jobs WHERE id = :job
), needed AS MATERIALIZED (
    SELECT 'ready' AS what, '' AS name, 'unstuck_ready' AS place, r.xmax AS locker
      FROM me JOIN unstuck_ready r ON r.route = me.route AND r.rank = me.rank AND r.job = me.id
     UNION ALL
    SELECT 'job', '', 'unstuck_jobs', j.xmax FROM me JOIN unstuck_jobs j ON j.id = me.id
     UNION ALL
    SELECT 'attempt', '', 'unstuck_running', a.xmax FROM me JOIN unstuck_running a ON a.job = me.id
     UNION ALL
    SELECT 'worker', w.name, 'unstuck_workers', w.xmax
      FROM me JOIN unstuck_running a ON a.job = me.id JOIN unstuck_workers w ON w.id = a.worker
     UNION ALL
    SELECT 'timer', '', 'unstuck_timers', s.xmax
      FROM me JOIN unstuck_timers s ON s.kind = 'start' AND s.due_at = me.available_at AND s.job = me.id
     UNION ALL
    SELECT 'wait', '', 'unstuck_waits', w.xmax FROM me JOIN unstuck_waits w ON w.job = me.id AND w.run = me.run
     UNION ALL
    SELECT 'line', t.name, 'unstuck_line', l.xmax
      FROM me JOIN unstuck_targets t ON t.id = me.target
      JOIN unstuck_line l ON l.target = me.target AND l.place IN (:first, -me.priority) AND l.job = me.id
     UNION ALL
    SELECT 'target', t.name, 'unstuck_targets', t.xmax FROM me JOIN unstuck_targets t ON t.id = me.target
     UNION ALL
    SELECT 'limit', l.kind || ' ' || l.name, 'unstuck_limits', l.xmax
      FROM me JOIN unstuck_route_limits r ON r.route = me.route JOIN unstuck_limits l ON l.id = r.limit_id
     UNION ALL
    SELECT 'workflow', f.name, 'unstuck_workflows', f.xmax FROM me JOIN unstuck_workflows f ON f.name = me.workflow
), locker AS MATERIALIZED (
    SELECT what, name, place, locker AS xid FROM needed WHERE locker <> CAST('0' AS xid)
     UNION
    -- Nothing says which numbers are multixacts: only those that exist as such may be asked about.
    SELECT what, name, place, member.xid
      FROM needed
     CROSS JOIN LATERAL pg_get_multixact_members(
           CASE WHEN mxid_age(needed.locker) BETWEEN 1 AND (SELECT MAX(mxid_age(datminmxid)) FROM pg_database)
                THEN needed.locker END) AS member
), lock AS MATERIALIZED (
    SELECT locktype, relation, transactionid, classid, objid, mode, pid
      FROM pg_locks
     WHERE granted AND (database IS NULL OR database = (SELECT oid FROM pg_database WHERE datname = current_database()))
), held AS (
    SELECT locker.what, locker.name, locker.place, NULL AS mode, lock.pid
      FROM locker
      JOIN lock ON lock.locktype = 'transactionid' AND lock.transactionid = locker.xid AND lock.mode = 'ExclusiveLock'
     UNION
    -- The number of a savepoint that was released goes on holding, and names nobody: then whoever wrote or locked in that table.
    SELECT locker.what, locker.name, locker.place, NULL, lock.pid
      FROM locker
     CROSS JOIN (SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) AS next) AS now
     CROSS JOIN LATERAL (
           SELECT (CAST(CAST(locker.xid AS TEXT) AS BIGINT) - now.next % 4294967296 + 6442450944) % 4294967296 - 2147483648 AS ahead) AS far
      JOIN lock ON lock.locktype = 'relation' AND lock.relation = to_regclass(locker.place)
               AND lock.mode IN ('RowShareLock', 'RowExclusiveLock')
     WHERE NOT EXISTS (SELECT 1 FROM lock AS own WHERE own.locktype = 'transactionid' AND own.transactionid = locker.xid)
       AND CASE WHEN far.ahead < 0 AND now.next + far.ahead > 2
                THEN pg_xact_status(CAST(CAST(now.next + far.ahead AS TEXT) AS xid8)) = 'in progress' END
     UNION
    SELECT 'table', c.relname, c.relname, lock.mode, lock.pid
      FROM lock
      JOIN pg_class c ON c.oid = lock.relation
     WHERE lock.locktype = 'relation' AND lock.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
       AND c.relname LIKE 'unstuck\_%'
       AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('unstuck_jobs'))
     UNION
    SELECT 'guard', '', '', NULL, lock.pid
      FROM lock
     WHERE lock.locktype = 'advisory' AND lock.classid = 0 AND lock.objid = 1970173813 AND lock.mode = 'ExclusiveLock'
)
SELECT held.what, held.name, held.place, held.mode, held.pid, a.application_name, a.usename, a.state, a.wait_event,
       unstuck_now() - CAST(EXTRACT(EPOCH FROM clock_timestamp() - a.xact_start) * 1000000 AS BIGINT) AS since_at
  FROM held
  LEFT JOIN pg_stat_activity a ON a.pid = held.pid
 WHERE held.pid IS DISTINCT FROM pg_backend_pid()
   AND COALESCE(clock_timestamp() - a.xact_start >= CAST(:longer AS BIGINT) * INTERVAL '1 microsecond', TRUE)
 ORDER BY a.xact_start, held.pid, held.what, held.name
 LIMIT 20
