DELETE FROM unstuck_dependencies WHERE job = :job
