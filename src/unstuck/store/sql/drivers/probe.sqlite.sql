-- A row of its own, and every time another value: where no byte can be written, on a full disk say, questions are answered, the
-- write lock is granted, and a statement that changes nothing succeeds.
INSERT INTO unstuck_idle (listener, until) VALUES ('probe', unstuck_now()) ON CONFLICT (listener) DO UPDATE SET until = excluded.until
