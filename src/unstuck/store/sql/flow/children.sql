-- Children, and what their parent's end does to them.

-- name: add_child
INSERT INTO unstuck_children (child, parent, run, name, ordinal, depth, on_end, payer)
SELECT j.id, :parent, :run, :name, :ordinal, :depth, :on_end, CAST(:payer AS BIGINT) FROM unstuck_jobs j WHERE j.uid = :uid

-- name: child_by_id
SELECT c.child, c.name, c.ordinal, c.run, c.left_at, v.uid, v.state, v.workflow, v.request, p.uid AS parent_uid
  FROM unstuck_children c
  JOIN unstuck_job_rows v ON v.number = c.child
  JOIN unstuck_jobs p ON p.id = c.parent
 WHERE c.parent = :parent AND v.uid = :uid

-- name: child_named
SELECT c.child, c.name, c.ordinal, c.run, c.left_at, v.uid, v.state, v.workflow, v.request, p.uid AS parent_uid
  FROM unstuck_children c
  JOIN unstuck_job_rows v ON v.number = c.child
  JOIN unstuck_jobs p ON p.id = c.parent
 WHERE c.parent = :parent AND c.name = :name AND c.ordinal = :ordinal

-- name: children_of
SELECT c.child, c.name, c.ordinal, c.run, c.left_at, v.uid, v.state, v.queue, v.workflow, v.request, p.uid AS parent_uid
  FROM unstuck_children c
  JOIN unstuck_jobs p ON p.id = c.parent
  {by_key unstuck_job_rows AS v ON v.number = c.child}
 WHERE c.parent = :job
 ORDER BY c.child

-- name: journal_children
SELECT c.child, c.name, c.ordinal, c.run, v.uid, v.state, v.workflow, p.uid AS parent_uid, 0 AS bytes
  FROM unstuck_children c
  JOIN unstuck_job_rows v ON v.number = c.child
  JOIN unstuck_jobs p ON p.id = c.parent
 WHERE c.parent = :job AND c.ordinal > 0
 ORDER BY c.name, c.ordinal
 LIMIT :most OFFSET :skip

-- name: count_children
-- No further than :most; those whose place another has taken do not count.
SELECT COUNT(*) AS children
  FROM (SELECT 1 FROM unstuck_children WHERE parent = :parent AND ordinal > 0 LIMIT :most) AS counted

-- name: bytes_of_children
-- How much these children of each job have left behind; the database need not read it to know its length.
SELECT r.parent AS job, SUM(COALESCE({bytes d.result}, 0)) AS bytes
  FROM {rows :rows AS r (parent BIGINT, uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key unstuck_done AS d ON d.job = j.id}
 GROUP BY r.parent

-- name: find_children
SELECT c.child, j.uid, (SELECT state FROM unstuck_done WHERE job = j.id) AS state
  FROM {list :children AS r (uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key unstuck_children AS c ON c.child = j.id}
 WHERE c.parent = :job

-- name: parent_of
SELECT p.uid AS parent
  FROM unstuck_jobs j
  LEFT JOIN unstuck_children c ON c.child = j.id
  LEFT JOIN unstuck_jobs p ON p.id = c.parent
 WHERE j.uid = :uid AND j.tenant = :tenant

-- name: watch_children
-- Those that have ended too: whoever looks at the newcomer finds all of them by these rows.
INSERT INTO unstuck_dependencies (job, on_job)
SELECT r.parent, j.id
  FROM {rows :rows AS r (parent BIGINT, uid TEXT)}
  {by_key unstuck_jobs AS j ON j.uid = r.uid}
  {by_key unstuck_children AS c ON c.child = j.id AND c.parent = r.parent}
ON CONFLICT DO NOTHING

-- name: leave_children
-- :rows are parents that ended badly; every = 1: whatever was said about them. Who has ended already is left in peace.
UPDATE unstuck_children
   SET left_at = unstuck_now()
 WHERE child {among}
       SELECT own.child
         FROM {rows :rows AS r (job BIGINT, every SMALLINT)}
         {all_by_key unstuck_children AS own ON own.parent = r.job AND own.left_at IS NULL AND (r.every = 1 OR own.on_end = 'cancel')
              AND (SELECT 1 FROM unstuck_done e WHERE e.job = own.child) IS NULL}
       {end}
RETURNING parent

-- name: left_children
-- uid is NULL of one that is gone altogether.
SELECT c.left_at, c.child,
       (SELECT j.uid FROM unstuck_jobs j WHERE j.id = c.child) AS uid,
       (SELECT j.tenant FROM unstuck_jobs j WHERE j.id = c.child) AS tenant,
       (SELECT j.target FROM unstuck_jobs j WHERE j.id = c.child) AS target,
       (SELECT p.uid FROM unstuck_jobs p WHERE p.id = c.parent) AS parent_uid,
       (SELECT e.state FROM unstuck_done e WHERE e.job = c.parent) AS parent_state
  FROM unstuck_children c
 WHERE c.left_at IS NOT NULL AND (c.left_at, c.child) > (:after_at, :after_child)
   AND NOT EXISTS (SELECT 1 FROM unstuck_quarantine q WHERE q.duty = 'children' AND q.item = c.child)
 ORDER BY c.left_at, c.child
 LIMIT :batch

-- name: left_child
-- As left_children, of one.
SELECT c.child, j.uid, j.tenant, j.target,
       (SELECT p.uid FROM unstuck_jobs p WHERE p.id = c.parent) AS parent_uid,
       (SELECT e.state FROM unstuck_done e WHERE e.job = c.parent) AS parent_state
  FROM unstuck_children c
  LEFT JOIN unstuck_jobs j ON j.id = c.child
 WHERE c.child = :child AND c.left_at IS NOT NULL

-- name: tended
UPDATE unstuck_children SET left_at = NULL WHERE child = :child

-- name: set_child_apart
-- It stays known as a child, and gives its name to the one that takes its place. By the name: the job itself may be forgotten.
UPDATE unstuck_children SET ordinal = -child WHERE parent = :parent AND name = :name AND ordinal = :ordinal

-- name: set_children_apart
-- They stay known as its children, and give their names to those that come.
UPDATE unstuck_children SET ordinal = -child WHERE parent = :job AND ordinal > 0
