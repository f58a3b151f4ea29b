-- By the parent: as long as it is kept, a spawn that is repeated must find its child. Without these rows the children may go too.
DELETE FROM unstuck_children WHERE parent {in :jobs BIGINT}
