-- What each version of a workflow says of its limit: that of the version that the doors go by holds.
ALTER TABLE unstuck_workflows ADD COLUMN concurrency BIGINT;
ALTER TABLE unstuck_workflows ADD COLUMN rate BIGINT;
ALTER TABLE unstuck_workflows ADD COLUMN per_us BIGINT;
UPDATE unstuck_workflows
   SET (concurrency, rate, per_us) = (SELECT l.code_concurrency, l.code_rate, l.code_per_us FROM unstuck_limits l
                                       WHERE l.kind = 'workflow' AND l.tenant = '*' AND l.name = unstuck_workflows.name);
-- `w.*` means the columns of the day on which a view was made.
DROP VIEW unstuck_versions;
CREATE VIEW unstuck_versions AS
SELECT w.*, live.name IS NOT NULL AS is_live
  FROM unstuck_workflows w
  LEFT JOIN (SELECT DISTINCT k.code_version, known.name
               FROM unstuck_workers k
               JOIN LATERAL json_array_elements_text(CAST(k.serves AS json) -> 'workflows') AS known (name) ON TRUE
              WHERE k.ended_at IS NULL AND k.lease_until > (SELECT unstuck_now()) AND k.state = 'active') AS live
    ON live.name = w.name AND live.code_version = w.code_version;

-- The instant of the clock that was asked for; NULL: a distance. A PENDING job goes by it when it is released.
ALTER TABLE unstuck_jobs ADD COLUMN appointed BIGINT;
ALTER TABLE unstuck_pauses ADD COLUMN appointed BIGINT;
