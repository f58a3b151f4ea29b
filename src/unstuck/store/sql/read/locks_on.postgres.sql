-- Which of the rows, tables and doors that a job needs are held, and by which sessions; those whose transaction is younger than :longer,
-- or than :ours where it is known as one of ours (see lock_holders), are ours at work. It looks and locks nothing: a row that is locked carries its locker's transaction in xmax (of several lockers a
-- multixact), and the lock that each transaction has on its own number names the session. What pg_stat_activity hides from
-- this user has no age, and counts.
WITH me AS MATERIALIZED (
    SELECT id, route, rank, target, workflow, priority, available_at, run FROM unstuck_jobs WHERE id = :job
), needed AS MATERIALIZED (
    -- Each by its key, whatever the statistics say.
    SELECT 'ready' AS what, '' AS name, 'unstuck_ready' AS place,
           (SELECT r.xmax FROM unstuck_ready r WHERE r.route = me.route AND r.rank = me.rank AND r.job = me.id) AS locker
      FROM me
     UNION ALL
    SELECT 'job', '', 'unstuck_jobs', (SELECT j.xmax FROM unstuck_jobs j WHERE j.id = me.id) FROM me
     UNION ALL
    SELECT 'attempt', '', 'unstuck_running', (SELECT a.xmax FROM unstuck_running a WHERE a.job = me.id) FROM me
     UNION ALL
    SELECT 'timer', '', 'unstuck_timers',
           (SELECT s.xmax FROM unstuck_timers s WHERE s.kind = 'start' AND s.due_at = me.available_at AND s.job = me.id)
      FROM me
     UNION ALL
    SELECT 'worker', w.name, 'unstuck_workers', w.locker
      FROM me
     CROSS JOIN LATERAL (SELECT w.name, w.xmax AS locker FROM unstuck_workers w
                          WHERE w.id = (SELECT a.worker FROM unstuck_running a WHERE a.job = me.id) LIMIT 1) AS w
     UNION ALL
    SELECT 'wait', '', 'unstuck_waits', w.locker
      FROM me
     CROSS JOIN LATERAL (SELECT w.xmax AS locker FROM unstuck_waits w WHERE w.job = me.id AND w.run = me.run LIMIT 100) AS w
     UNION ALL
    SELECT 'target', t.name, 'unstuck_targets', t.locker
      FROM me
     CROSS JOIN LATERAL (SELECT t.name, t.xmax AS locker FROM unstuck_targets t WHERE t.id = me.target LIMIT 1) AS t
     UNION ALL
    SELECT 'line', t.name, 'unstuck_line', l.locker
      FROM me
     CROSS JOIN LATERAL (SELECT t.name FROM unstuck_targets t WHERE t.id = me.target LIMIT 1) AS t
     CROSS JOIN LATERAL (SELECT l.xmax AS locker FROM unstuck_line l
                          WHERE l.target = me.target AND l.place IN (:first, -me.priority) AND l.job = me.id LIMIT 2) AS l
     UNION ALL
    -- Entries that are held are the oldest there are.
    SELECT 'inbox', '', 'unstuck_inbox', i.locker
      FROM me
      JOIN (SELECT i.target, i.job, i.xmax AS locker FROM unstuck_inbox i ORDER BY i.seq LIMIT 100) AS i
        ON i.target = me.target OR i.job = me.id
     UNION ALL
    SELECT 'limit', CASE l.kind WHEN 'workflow_key' THEN 'each key of workflow' ELSE l.kind END || ' ' || l.name, 'unstuck_limits', l.locker
      FROM me
     CROSS JOIN LATERAL (SELECT r.limit_id FROM unstuck_route_limits r WHERE r.route = me.route OFFSET 0) AS r
     CROSS JOIN LATERAL (SELECT l.kind, l.name, l.xmax AS locker FROM unstuck_limits l WHERE l.id = r.limit_id LIMIT 1) AS l
     UNION ALL
    SELECT 'workflow', f.name, 'unstuck_workflows', f.locker
      FROM me
     CROSS JOIN LATERAL (SELECT f.name, f.xmax AS locker FROM unstuck_workflows f WHERE f.name = me.workflow LIMIT 100) AS f
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
       unstuck_now() - CAST(EXTRACT(EPOCH FROM clock_timestamp() - COALESCE(a.xact_start, a.state_change)) * 1000000 AS BIGINT) AS since_at
  FROM held
  LEFT JOIN pg_stat_activity a ON a.pid = held.pid
 WHERE held.pid IS DISTINCT FROM pg_backend_pid()
   AND (held.pid IS NULL OR a.pid IS NOT NULL)
   AND COALESCE(clock_timestamp() - COALESCE(a.xact_start, a.state_change)
                >= CASE WHEN starts_with(a.query, '/* unstuck */') OR starts_with(a.application_name, 'unstuck ')
                        THEN CAST(:ours AS BIGINT) ELSE CAST(:longer AS BIGINT) END * INTERVAL '1 microsecond', TRUE)
 ORDER BY COALESCE(a.xact_start, a.state_change), held.pid, held.what, held.name
 LIMIT 20
