"""READ. What people and programs look at: lists, counts, the feed, why a job does not run."""
