-- Transaction-level, so that it works behind a pooler; the number spells "unst" in ASCII.
SELECT pg_advisory_xact_lock(1970173812)
