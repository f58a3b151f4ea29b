DELETE FROM unstuck_parts
 WHERE job = ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:jobs AS json))))
