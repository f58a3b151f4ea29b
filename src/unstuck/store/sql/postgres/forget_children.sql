-- By the parent: as long as it is kept, a spawn that is repeated must find its child. Without these rows the children may go too.
DELETE FROM unstuck_children
 WHERE parent = ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(:jobs AS json))))
