-- There is one writer: no claim is under way.
SELECT 1
