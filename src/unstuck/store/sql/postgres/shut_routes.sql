-- = ANY reaches into every branch of the view; what limits count is then counted once for all routes.
SELECT DISTINCT route FROM unstuck_gates WHERE route = ANY (CAST(:routes AS BIGINT[])) AND probe IS NULL
