"""Troubles of a single row: a trigger that raises when it is written, in the database of the test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

SAYS = "this one cannot be written"


@contextmanager
def raising(url: str, table: str, condition: str, event: str = "INSERT") -> Iterator[None]:
    """Meanwhile no row of this table that fulfils the condition on NEW can be written; all others can."""
    if url.startswith("sqlite"):
        create = (
            f"CREATE TRIGGER trouble BEFORE {event} ON {table} WHEN {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{SAYS}'); END"
        )
        drop = "DROP TRIGGER trouble"
        _on_file(url, create)
        try:
            yield
        finally:
            _on_file(url, drop)
        return
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{SAYS}'; END $$"
        )
        connection.execute(
            f"CREATE TRIGGER trouble BEFORE {event} ON {table} FOR EACH ROW WHEN ({condition}) "
            "EXECUTE FUNCTION trouble()"
        )
        try:
            yield
        finally:
            connection.execute(f"DROP TRIGGER trouble ON {table}")


def _on_file(url: str, statement: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=10.0, isolation_level=None)) as connection:
        connection.execute(statement)


@contextmanager
def holding(url: str, table: str, condition: str) -> Iterator[psycopg.Connection]:
    """A person in psql, a backup, a forgotten transaction: he holds these rows until the end of the block."""
    with psycopg.connect(url) as person:
        found = person.execute(f"SELECT 1 FROM {table} WHERE {condition} FOR UPDATE").fetchall()
        assert found, f"nothing in {table} is {condition}"
        yield person
        person.rollback()
