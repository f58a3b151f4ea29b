-- The global feed: every committed event once, in one order. Whoever reads gives the events their positions (unstuck_sequence);
-- whoever writes them does nothing but fill one index.
--
-- Why not by id: ids are drawn before the commit, so a slow transaction's would appear behind a reader's back. Why not up to the
-- oldest open transaction: one that somebody forgot to end would stop everybody. Instead the sequencer remembers which
-- transactions it has seen the end of (all below `since` but those in `open`), as a snapshot does, and takes the rows of exactly
-- the others that are visible now. Nothing depends on gaps in ids or on the order of commits.

-- Give about `most` events that have no position yet their positions; how many it were, or -1 if somebody else is just doing it.
-- One call is one transaction in one round trip: a reader that is stopped or killed meanwhile holds up nobody.
-- Events that nobody asked for within `kept` get none: then no cursor is young enough to miss them.
-- No seqscan: new xids lie beyond all statistics, and a large table must not be read from end to end for a few rows. No jit: what is
-- forbidden counts as infinitely dear, and would be compiled anew each time.
CREATE OR REPLACE FUNCTION unstuck_sequence(most BIGINT, kept BIGINT) RETURNS BIGINT
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    seen   unstuck_sequencer%ROWTYPE;
    newest XID8;
    oldest BIGINT;
    taken  BIGINT;
BEGIN
    -- Look first: taking the lock is a write, and most looks of an idle reader find nothing.
    SELECT * INTO STRICT seen FROM unstuck_sequencer;
    newest := pg_snapshot_xmax(pg_current_snapshot());
    IF newest >= seen.since
       AND NOT EXISTS (SELECT 1 FROM unstuck_events WHERE xid >= seen.since AND xid < newest)
       AND NOT EXISTS (SELECT 1 FROM unstuck_events WHERE xid = ANY (seen.open)) THEN
        RETURN 0;
    END IF;

    SELECT * INTO seen FROM unstuck_sequencer FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN -1;
    END IF;
    newest := pg_snapshot_xmax(pg_current_snapshot());

    IF newest < seen.since THEN
        RETURN unstuck_sequence_restored(seen);
    END IF;

    SELECT at INTO oldest
      FROM unstuck_events
     WHERE xid >= seen.since AND xid < newest AND id > seen.restored
     ORDER BY xid
     LIMIT 1;
    IF oldest <= unstuck_now() - kept THEN
        UPDATE unstuck_sequencer
           SET position = seen.position + 1, floor = seen.position + 1, since = pg_snapshot_xmax(now.snapshot),
               open = ARRAY(SELECT pg_snapshot_xip(now.snapshot))
          FROM (SELECT pg_current_snapshot() AS snapshot) AS now;
        RETURN 0;
    END IF;

    -- One statement, because it is one snapshot: what it sees of the rows and what it says of the transactions must agree.
    WITH now AS MATERIALIZED (
        SELECT pg_current_snapshot() AS snapshot
    ), edge AS MATERIALIZED (
        SELECT LEAST(pg_snapshot_xmax(now.snapshot),
                     (SELECT beyond.xid
                        FROM unstuck_events AS beyond
                       WHERE beyond.xid > (SELECT e.xid FROM unstuck_events AS e
                                            WHERE e.xid >= seen.since ORDER BY e.xid LIMIT 1 OFFSET most - 1)
                       ORDER BY beyond.xid
                       LIMIT 1)) AS xid
          FROM now
    ), found AS MATERIALIZED (
        SELECT e.id, e.job, e.number FROM unstuck_events AS e
         WHERE e.xid >= seen.since AND e.xid < (SELECT xid FROM edge) AND e.id > seen.restored
         UNION ALL
        SELECT e.id, e.job, e.number FROM unstuck_events AS e
         WHERE e.xid = ANY (seen.open) AND e.id > seen.restored
    ), placed AS (
        SELECT job, number, ROW_NUMBER() OVER (ORDER BY id) AS place FROM found
    ), told AS (
        INSERT INTO unstuck_feed (first, last, at, jobs, numbers)
        SELECT seen.position + MIN(place), seen.position + MAX(place), unstuck_now(),
               ARRAY_AGG(job ORDER BY place), ARRAY_AGG(number ORDER BY place)
          FROM placed
         GROUP BY (place - 1) / 500
    )
    UPDATE unstuck_sequencer AS s
       SET position = seen.position + (SELECT COUNT(*) FROM found),
           since = edge.xid,
           open = ARRAY(SELECT x FROM pg_snapshot_xip(now.snapshot) AS x WHERE x < edge.xid),
           high = GREATEST(s.high, (SELECT MAX(id) FROM found))
      FROM now, edge
    RETURNING s.position - seen.position INTO taken;
    RETURN taken;
END
$$;

-- Transactions are numbered anew: this database was restored from a dump, and `since` is of the old numbering. New events are
-- those with ids above all that has a position; the numbers of the old ones mean nothing any more.
CREATE OR REPLACE FUNCTION unstuck_sequence_restored(seen unstuck_sequencer) RETURNS BIGINT
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off AS $$
DECLARE
    taken BIGINT;
BEGIN
    WITH now AS MATERIALIZED (
        SELECT pg_current_snapshot() AS snapshot
    ), left_over AS MATERIALIZED (
        SELECT xid, id, job, number FROM unstuck_events WHERE xid >= seen.since AND id > seen.restored
         UNION ALL
        SELECT xid, id, job, number FROM unstuck_events WHERE xid = ANY (seen.open) AND id > seen.restored
    ), found AS MATERIALIZED (
        SELECT id, job, number FROM left_over
         UNION
        SELECT id, job, number FROM unstuck_events WHERE xid < (SELECT pg_snapshot_xmax(snapshot) FROM now) AND id > seen.high
    ), placed AS (
        SELECT job, number, ROW_NUMBER() OVER (ORDER BY id) AS place FROM found
    ), told AS (
        INSERT INTO unstuck_feed (first, last, at, jobs, numbers)
        SELECT seen.position + MIN(place), seen.position + MAX(place), unstuck_now(),
               ARRAY_AGG(job ORDER BY place), ARRAY_AGG(number ORDER BY place)
          FROM placed
         GROUP BY (place - 1) / 500
    )
    UPDATE unstuck_sequencer AS s
       SET position = seen.position + (SELECT COUNT(*) FROM found),
           since = pg_snapshot_xmax(now.snapshot),
           open = ARRAY(SELECT pg_snapshot_xip(now.snapshot)),
           high = GREATEST(s.high, (SELECT MAX(id) FROM found)),
           restored = GREATEST(s.high, (SELECT MAX(id) FROM left_over WHERE xid >= pg_snapshot_xmax(now.snapshot)))
      FROM now
    RETURNING s.position - seen.position INTO taken;
    RETURN taken;
END
$$;
