UPDATE unstuck_parts SET name = '', value = 'null' WHERE job = :job
