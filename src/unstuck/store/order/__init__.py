"""ORDER. Who runs next: routes, targets and their lines, pauses, limits, weights."""
