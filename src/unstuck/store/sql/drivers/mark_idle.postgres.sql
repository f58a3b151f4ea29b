-- A hint with an end: a listener that was killed stops costing notifications by itself.
INSERT INTO unstuck_idle (listener, until)
VALUES (:listener, unstuck_now() + CAST(:microseconds AS BIGINT))
ON CONFLICT (listener) DO UPDATE SET until = EXCLUDED.until
