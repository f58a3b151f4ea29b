INSERT INTO unstuck_children (child, parent, run, name, ordinal, depth, on_end)
SELECT j.id, :parent, :run, :name, :ordinal, :depth, :on_end FROM unstuck_jobs j WHERE j.uid = :uid
