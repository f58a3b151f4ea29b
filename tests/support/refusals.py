"""Rows that a database refuses to write, by a trigger such as somebody may have made; until it is taken away."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

from unstuck.store.connect import sqlite_path


def refuse(url: str, table: str, when: str, on: str = "INSERT") -> None:
    """`when` speaks of NEW, in words that both databases understand."""
    name = f"refuse_{table}"
    if url.startswith("sqlite"):
        _on_sqlite(
            url,
            f"CREATE TRIGGER {name} BEFORE {on} ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, 'not for you'); END",
        )
        return
    _on_postgres(
        url,
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS TRIGGER LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION 'not for you'; END $$;"
        f"CREATE TRIGGER {name} BEFORE {on} ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {name}()",
    )


def allow(url: str, table: str) -> None:
    if url.startswith("sqlite"):
        _on_sqlite(url, f"DROP TRIGGER refuse_{table}")
        return
    _on_postgres(url, f"DROP TRIGGER refuse_{table} ON {table}")


def _on_sqlite(url: str, text: str) -> None:
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=10)) as connection:
        connection.execute(text)


def _on_postgres(url: str, text: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.encode())
