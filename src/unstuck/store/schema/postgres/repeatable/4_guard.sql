-- Jobs in the queue of a workflow that is shut out: ready, or in the line of their target. OFFSET 0: from entry to route to job, never
-- by reading all that is ready.
CREATE OR REPLACE VIEW unstuck_at_the_gate AS
SELECT b.id AS entry, r.id AS route, w.job
  FROM (SELECT id, workflow, tenant, probe FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant) AS b
 CROSS JOIN LATERAL (SELECT id FROM unstuck_routes
                      WHERE workflow = b.workflow AND (b.tenant = '*' OR tenant = b.tenant) OFFSET 0) AS r
 CROSS JOIN LATERAL (SELECT job FROM unstuck_ready WHERE route = r.id
                      UNION ALL
                     SELECT job FROM unstuck_line WHERE route = r.id OFFSET 0) AS w
 WHERE b.probe IS NULL OR b.probe <> w.job;

-- Every claim passes here, and whoever makes an entry shuts this door before it commits: it waits for the claims that are
-- inside, and those that come find it shut and take nothing. So no claim that commits after an entry has overlooked it. The
-- look comes in a statement of its own after the lock: the claim's own snapshot may be older than the entry. (ORDER BY, here and
-- elsewhere: so it reads the index of the active ones, however long the history grows.)
-- 1: there are entries, 0: there are none, -1: one is being made at this moment.
CREATE OR REPLACE FUNCTION unstuck_pass_guard() RETURNS INTEGER LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared(1970173813) THEN
        RETURN -1;
    END IF;
    IF (SELECT 1 FROM unstuck_blacklist WHERE removed_at IS NULL ORDER BY workflow, tenant LIMIT 1) IS NOT NULL THEN
        RETURN 1;
    END IF;
    RETURN 0;
END
$$;
