-- One-time tickets for streams: an EventSource can send no header, and no key may stand in an address. digest: of the ticket and of what it is for, so that a
-- ticket for one stream is none for another. Whoever uses it takes the row away.
CREATE TABLE unstuck_tickets (
    digest  TEXT PRIMARY KEY,
    key     TEXT NOT NULL,
    ends_at INTEGER NOT NULL
);
CREATE INDEX unstuck_tickets_ends ON unstuck_tickets (ends_at);
