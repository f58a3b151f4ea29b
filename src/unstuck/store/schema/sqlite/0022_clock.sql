-- The engine's time does not leap with the host's clock: it is BOOTTIME and an anchor that the first process of a boot sets. `ahead` is how far it
-- is from that clock; distances (leases, delays, limits) live in the engine's time and need nothing; an appointment is an instant of the clock, and
-- moves. `moved`: the `ahead` that every appointment has been moved for.
CREATE TABLE unstuck_clock (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    ahead    INTEGER NOT NULL,
    moved    INTEGER NOT NULL,
    leaps    INTEGER NOT NULL,
    leapt_at INTEGER,
    leap     INTEGER,
    noticed  TEXT,
    boot     TEXT,
    anchor   INTEGER
);
INSERT INTO unstuck_clock (one, ahead, moved, leaps) VALUES (1, 0, 0, 0);

ALTER TABLE unstuck_workers ADD COLUMN boot_at INTEGER;

-- The instant of the clock that was asked for; NULL: a distance.
ALTER TABLE unstuck_timers ADD COLUMN appointed INTEGER;
CREATE INDEX unstuck_timers_appointed ON unstuck_timers (job, kind) WHERE appointed IS NOT NULL;
