-- Makes the breaker if it is new, and locks it in either case: what is counted after this is counted by one at a time.
INSERT INTO unstuck_breakers (tenant, workflow)
VALUES (:tenant, :workflow)
ON CONFLICT (tenant, workflow) DO UPDATE SET cleared_upto = unstuck_breakers.cleared_upto
