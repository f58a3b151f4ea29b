-- By the parent: as long as it is kept, a spawn that is repeated must find its child, even one that is gone.
DELETE FROM unstuck_children WHERE parent IN (SELECT value FROM json_each(:jobs))
