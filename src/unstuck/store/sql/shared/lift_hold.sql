DELETE FROM unstuck_holds WHERE job = :job
