-- first_name: by it a database is known whose migrations had other numbers.
SELECT COALESCE(MAX(number), 0) AS version, MAX(CASE WHEN number = 1 THEN name END) AS first_name
  FROM unstuck_migrations
