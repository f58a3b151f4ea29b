"""What passing TIME does to jobs. One duty per file; every worker and server runs it, no leader."""
