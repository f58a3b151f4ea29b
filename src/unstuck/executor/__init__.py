"""EXECUTE. The processes where user code lives; they know no database."""
