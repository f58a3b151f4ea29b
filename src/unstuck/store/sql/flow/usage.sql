-- What a job has spent of its budget, and what its tree has.

-- name: add_usage
-- A spending that was counted before (its answer was lost) changes nothing: serials grow within an attempt, tokens with attempts.
-- in_tree: 1 if its budget is its tree's.
INSERT INTO unstuck_usage AS u (job, run, unit, used, token, serial, tree)
SELECT CAST(:job AS BIGINT), CAST(:run AS BIGINT), r.unit, r.amount, CAST(:token AS BIGINT), CAST(:serial AS BIGINT),
       r.amount * CAST(:in_tree AS INTEGER)
  FROM {rows :rows AS r (unit TEXT, amount DOUBLE PRECISION)}
 WHERE TRUE
ON CONFLICT (job, run, unit) DO UPDATE
   SET used = u.used + excluded.used, token = excluded.token, serial = excluded.serial, tree = u.tree + excluded.tree
 WHERE (u.token, u.serial) < (excluded.token, excluded.serial)

-- name: charge_payer
-- What somebody below it has spent.
INSERT INTO unstuck_usage AS u (job, run, unit, used, token, serial, tree)
SELECT CAST(:payer AS BIGINT), CAST(:run AS BIGINT), r.unit, 0, 0, 0, r.amount
  FROM {rows :rows AS r (unit TEXT, amount DOUBLE PRECISION)}
 WHERE TRUE
ON CONFLICT (job, run, unit) DO UPDATE SET tree = u.tree + excluded.tree

-- name: usage
SELECT unit, used FROM unstuck_usage WHERE job = :job AND run = :run AND token > 0 ORDER BY unit

-- name: tree_usage
SELECT unit, tree FROM unstuck_usage WHERE job = :job AND run = :run ORDER BY unit

-- name: payers
-- Those above it whose budget is their tree's, the nearest first; mostly none or one. How deep a tree may be is bounded.
WITH RECURSIVE above (payer, place) AS (
    SELECT c.payer, 1 FROM unstuck_children c WHERE c.child = :job
     UNION ALL
    SELECT c.payer, above.place + 1 FROM above JOIN unstuck_children c ON c.child = above.payer WHERE above.place < 20
)
SELECT v.number, v.uid, v.run, v.policy
  FROM above
  JOIN unstuck_job_rows v ON v.number = above.payer
 ORDER BY above.place

-- name: policy_of_job
SELECT j.uid, j.policy, (SELECT c.payer FROM unstuck_children c WHERE c.child = j.id) AS payer
  FROM unstuck_jobs j
 WHERE j.id = :job
