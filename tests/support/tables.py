"""What a database holds, table by table: to show that something wrote nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, LiteralString

import psycopg

from unstuck.store.drivers.connect import sqlite_path

#: Who listens, and the tests' own clock.
_RESTLESS = {"unstuck_idle", "unstuck_test_clock"}


def counts_of_tables(url: str) -> dict[str, int]:
    catalogue: LiteralString = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'unstuck%'"
        if url.startswith("sqlite")
        else "SELECT tablename FROM pg_tables WHERE tablename LIKE 'unstuck%'"
    )
    with _asking(url) as ask:
        names = sorted(row[0] for row in ask(catalogue) if row[0] not in _RESTLESS)
        return {name: int(ask(f"SELECT COUNT(*) FROM {name}")[0][0]) for name in names}


def ask(url: str, sql: LiteralString) -> list[Any]:
    """A question of the test's own, on a connection of its own."""
    with _asking(url) as ask:
        return ask(sql)


@contextmanager
def _asking(url: str) -> Iterator[Callable[[LiteralString], list[Any]]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url))) as connection:
            yield lambda sql: connection.execute(sql).fetchall()
        return
    with psycopg.connect(url, autocommit=True) as session:
        yield lambda sql: session.execute(sql).fetchall()
