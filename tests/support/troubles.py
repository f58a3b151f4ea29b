"""Troubles in the database of the test: a trigger that raises when a row is written, a session that holds one, a
table that is not there."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import LiteralString

import psycopg

from unstuck.store.drivers.connect import sqlite_path

SAYS = "not for you"
#: The claims that a server works on.
CLAIMS: LiteralString = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND state = 'active' AND query LIKE '%unstuck_pass_guard%'"
)


#: Seconds of a call of a patient store: it waits for a lock for two fifths of them.
PATIENT = 30.0


@contextmanager
def waiting_for_no_lock() -> Iterator[None]:
    """Of what a patient store is asked meanwhile. A busy machine takes a second for it now and then: that could not
    be told from the 1.2 s for which a store waits for a lock as a rule."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 0.2 * PATIENT, "it waited for a lock"


def refuse(url: str, table: str, when: str, on: str = "INSERT") -> None:
    """From now on no such row can be written; all others can. `when` speaks of NEW, or of OLD where rows go, in words
    that both databases understand."""
    name = f"refuse_{table}"
    if url.startswith("sqlite"):
        execute(
            url, f"CREATE TRIGGER {name} BEFORE {on} ON {table} WHEN {when} BEGIN SELECT RAISE(ABORT, '{SAYS}'); END"
        )
        return
    _trigger(url, table, when, on, f"RAISE EXCEPTION '{SAYS}';")


def slow_down(url: str, table: str, when: str, seconds: float, on: str = "INSERT") -> None:
    """From now on such a row takes so long; of PostgreSQL alone."""
    _trigger(url, table, when, on, f"PERFORM pg_sleep({seconds}); RETURN COALESCE(NEW, OLD);")


def _trigger(url: str, table: str, when: str, on: str, does: str) -> None:
    name = f"refuse_{table}"
    execute(
        url,
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN {does} END $$;"
        f"CREATE TRIGGER {name} BEFORE {on} ON {table} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION {name}()",
    )


def allow(url: str, table: str) -> None:
    """It is over."""
    execute(url, f"DROP TRIGGER refuse_{table}" + ("" if url.startswith("sqlite") else f" ON {table}"))


@contextmanager
def claims_waiting(url: str) -> Iterator[Callable[[], bool]]:
    """Every claim waits where it opens its attempts, until the end of the block; gives whether one does. Of
    PostgreSQL alone: on SQLite nobody would write at all."""
    with psycopg.connect(url) as keeper, psycopg.connect(url, autocommit=True) as watcher:
        keeper.execute("LOCK TABLE unstuck_running IN EXCLUSIVE MODE")
        yield lambda: bool(watcher.execute(f"{CLAIMS} AND wait_event_type = 'Lock'").fetchall())


@contextmanager
def raising(url: str, table: str, when: str, on: str = "INSERT") -> Iterator[None]:
    refuse(url, table, when, on)
    try:
        yield
    finally:
        allow(url, table)


@contextmanager
def missing(url: str, table: str) -> Iterator[None]:
    """Whoever needs this table fails at once, until the end of the block."""
    # SQLite would have its views follow the table.
    stay = "PRAGMA legacy_alter_table = ON;" if url.startswith("sqlite") else ""
    execute(url, f"{stay} ALTER TABLE {table} RENAME TO {table}_elsewhere")
    try:
        yield
    finally:
        execute(url, f"{stay} ALTER TABLE {table}_elsewhere RENAME TO {table}")


@contextmanager
def slow(url: str, table: str, when: str, seconds: float, on: str = "INSERT") -> Iterator[None]:
    slow_down(url, table, when, seconds, on)
    try:
        yield
    finally:
        allow(url, table)


def execute(url: str, text: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=20)) as file:
            file.executescript(text)
        return
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(text.encode())


@contextmanager
def holding(url: str, table: str, condition: str) -> Iterator[psycopg.Connection]:
    """A person in psql, a backup, a forgotten transaction: he holds these rows until the end of the block."""
    with psycopg.connect(url, application_name="somebody") as person:
        found = person.execute(f"SELECT 1 FROM {table} WHERE {condition} FOR UPDATE".encode()).fetchall()
        assert found, f"nothing in {table} is {condition}"
        yield person
        person.rollback()


def waits_for_a_lock(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
    return row is not None and row[0] > 0
