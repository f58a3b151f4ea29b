-- The engine's time does not leap with the database's clock: it is that clock and what it is `ahead` of it, and whoever notices a leap takes it back
-- there. Distances (leases, delays, limits) live in the engine's time and need nothing; an appointment is an instant of the clock, and moves.
-- `ahead` is a constant inside a function: inlined into every statement it costs nothing, and who replaces it replaces it for all sessions at once.

CREATE FUNCTION unstuck_wall() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)
$$;

CREATE FUNCTION unstuck_ahead() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CAST(0 AS BIGINT)
$$;

CREATE OR REPLACE FUNCTION unstuck_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT unstuck_wall() + unstuck_ahead()
$$;

-- `moved`: the `ahead` that every appointment has been moved for. boot and anchor are SQLite's.
CREATE TABLE unstuck_clock (
    one      SMALLINT PRIMARY KEY CHECK (one = 1),
    ahead    BIGINT NOT NULL,
    moved    BIGINT NOT NULL,
    leaps    BIGINT NOT NULL,
    leapt_at BIGINT,
    leap     BIGINT,
    noticed  TEXT,
    boot     TEXT,
    anchor   BIGINT
);
INSERT INTO unstuck_clock (one, ahead, moved, leaps) VALUES (1, 0, 0, 0);

-- What the row says becomes so. As its owner, because a role that may write rows need not be one that may replace functions.
CREATE FUNCTION unstuck_keep_time() RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    wanted BIGINT := (SELECT ahead FROM unstuck_clock);
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION unstuck_ahead() RETURNS BIGINT LANGUAGE sql VOLATILE AS %L',
                   format('SELECT CAST(%s AS BIGINT)', wanted));
    RETURN wanted;
END
$$;

-- When the worker beat last, by BOOTTIME of its machine: who starts there later finds out what the clock did meanwhile.
ALTER TABLE unstuck_workers ADD COLUMN boot_at BIGINT;

-- The instant of the clock that was asked for; NULL: a distance.
ALTER TABLE unstuck_timers ADD COLUMN appointed BIGINT;
CREATE INDEX unstuck_timers_appointed ON unstuck_timers (job, kind) WHERE appointed IS NOT NULL;
