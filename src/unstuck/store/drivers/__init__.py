"""DRIVERS. How the two databases are reached: connections, transactions, SQL by name, schema, clock."""
