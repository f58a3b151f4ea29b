"""What a database holds, table by table: to show that something wrote nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any, LiteralString

import psycopg

from unstuck.store.connect import sqlite_path

#: Who listens, and the tests' own clock.
_RESTLESS = {"unstuck_idle", "unstuck_test_clock"}


def counts_of_tables(url: str) -> dict[str, int]:
    return {name: int(ask(url, f"SELECT COUNT(*) FROM {name}")[0][0]) for name in _tables(url)}


def ask(url: str, sql: LiteralString) -> list[Any]:
    """A question of the test's own, on a connection of its own."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            return connection.execute(sql).fetchall()
    with psycopg.connect(url, autocommit=True) as session:
        return session.execute(sql).fetchall()


def _tables(url: str) -> list[str]:
    if url.startswith("sqlite"):
        found = ask(url, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'unstuck%'")
    else:
        found = ask(url, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'unstuck%'")
    return sorted(row[0] for row in found if row[0] not in _RESTLESS)
