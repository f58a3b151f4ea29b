-- A worker learns its version with its app, which may be long after its row was made; an app without workflows has none to tell.
UPDATE unstuck_workers
   SET serves = :serves, code_version = COALESCE(CAST(:code_version AS TEXT), code_version)
 WHERE id = :worker AND (serves <> :serves OR code_version <> COALESCE(CAST(:code_version AS TEXT), code_version))
