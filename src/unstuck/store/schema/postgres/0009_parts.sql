-- Partial results: what handlers give before they have ended.

-- One row per name, written under the fence. number: of all writes of its job the how-manieth this was; it never begins anew, so that
-- who follows asks for what came after the last one seen. serial: of the errand that wrote it, so that one that comes late, or
-- twice, changes nothing. value is JSON. A resume from the start leaves one row without a name, which keeps the number.
CREATE TABLE unstuck_parts (
    job    BIGINT NOT NULL,
    name   TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    run    BIGINT NOT NULL,
    token  BIGINT NOT NULL,
    serial BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    value  TEXT NOT NULL,
    PRIMARY KEY (job, name)
);
CREATE UNIQUE INDEX unstuck_parts_number ON unstuck_parts (job, number);
