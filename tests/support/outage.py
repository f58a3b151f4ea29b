"""An outage that both databases can have: a lock that somebody holds and does not let go."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from unstuck.store.drivers.connect import sqlite_path


@contextmanager
def database_away(url: str) -> Iterator[None]:
    """Every write waits in vain until the end of the block; questions that take no locks are still answered."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            connection.execute("LOCK TABLE unstuck_workers, unstuck_running, unstuck_jobs IN ACCESS EXCLUSIVE MODE")
            yield
        return
    lock = sqlite3.connect(sqlite_path(url), isolation_level=None)
    lock.execute("PRAGMA busy_timeout = 5000")
    lock.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        lock.execute("ROLLBACK")
        lock.close()
