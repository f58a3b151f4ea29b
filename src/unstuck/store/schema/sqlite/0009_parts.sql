-- The same as on PostgreSQL.
-- Partial results: what handlers give before they have ended.

-- One row per name, written under the fence. number: of all writes of its job the how-manieth this was; it never begins anew, so that
-- who follows asks for what came after the last one seen. serial: of the errand that wrote it, so that one that comes late, or
-- twice, changes nothing. value is JSON. A resume from the start leaves one row without a name, which keeps the number.
CREATE TABLE unstuck_parts (
    job    INTEGER NOT NULL,
    name   TEXT NOT NULL,
    number INTEGER NOT NULL,
    run    INTEGER NOT NULL,
    token  INTEGER NOT NULL,
    serial INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (job, name)
) WITHOUT ROWID;
CREATE UNIQUE INDEX unstuck_parts_number ON unstuck_parts (job, number);
