"""Door: the command line. Data on stdout, everything else on stderr; no rule lives here."""
