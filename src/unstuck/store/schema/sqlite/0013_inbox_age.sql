-- Since when an entry stands there: one that nobody works off must be noticed. By default, so that nobody who writes one can forget it;
-- here a column that is added cannot have such a default. Numbers go on where they were: claimers remember the last they saw.
CREATE TABLE unstuck_inbox_before AS SELECT seq, target, job FROM unstuck_inbox;
CREATE TABLE unstuck_inbox_seq AS SELECT seq FROM sqlite_sequence WHERE name = 'unstuck_inbox';
DROP TABLE unstuck_inbox;
CREATE TABLE unstuck_inbox (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    target INTEGER,
    job    INTEGER,
    at     INTEGER NOT NULL DEFAULT (unstuck_now())
);
INSERT INTO unstuck_inbox (seq, target, job, at)
SELECT seq, target, job, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 FROM unstuck_inbox_before;
DELETE FROM sqlite_sequence WHERE name = 'unstuck_inbox';
INSERT INTO sqlite_sequence (name, seq) SELECT 'unstuck_inbox', seq FROM unstuck_inbox_seq;
DROP TABLE unstuck_inbox_before;
DROP TABLE unstuck_inbox_seq;
