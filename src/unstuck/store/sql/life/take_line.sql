DELETE FROM unstuck_line WHERE target = :target AND place IN (:place, :first) AND job = :job
