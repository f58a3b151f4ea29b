-- 100 % of them: a percent sign and a :colon in a comment are not parameters
SELECT id, text, '50 % :off' AS label FROM notes WHERE CAST(:id AS INTEGER) IS NULL OR id = CAST(:id AS INTEGER) ORDER BY id
