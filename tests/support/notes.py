"""Notes: a table and a few statements of the tests' own, to ask a driver things that no verb would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.drivers.postgres import PostgresDatabase
from unstuck.store.drivers.sqlite import SqliteDatabase
from unstuck.store.drivers.statements import Statements

FOLDER = Path(__file__).parent.parent / "store" / "sql"


def open_notes(url: str, **options: Any) -> Database:
    """A driver that knows the statements of tests/store/sql."""
    if url.startswith("postgresql"):
        return PostgresDatabase(url, statements=Statements("postgres", FOLDER), **options)
    return SqliteDatabase(sqlite_path(url), statements=Statements("sqlite", FOLDER), **options)


def make(database: Database) -> None:
    database.write(lambda tx: tx.run("make_notes"))


def add(database: Database, id: int, text: str = "", within: float | None = None) -> int:
    return database.write(lambda tx: tx.run("add_note", id=id, text=text), within)


def ids(database: Database) -> list[int]:
    return [row["id"] for row in database.read(lambda tx: tx.all("notes", id=None))]


def count(database: Database) -> int:
    def work(tx: Transaction) -> int:
        row = tx.one("count_notes")
        assert row is not None
        return int(row["n"])

    return database.read(work)
