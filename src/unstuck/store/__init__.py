"""STORE. One port, one body of SQL, two databases."""
