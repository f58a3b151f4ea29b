"""A database that has served one test is a fresh one for the next, or the next gets another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.support.builders import a_worker, claimed, settle, submitted
from tests.support.lending import Lender
from tests.support.postgres import EXISTING, PostgresServer, own_server
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.postgres import PostgresDatabase
from unstuck.store.sql_store import SqlStore


@pytest.fixture(scope="module")
def ours(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A server where we may do everything."""
    if not os.environ.get(EXISTING):
        yield postgres_server
        return
    with own_server() as started:
        server = PostgresServer(started.dsn)
        server.make_template()
        yield server


@pytest.fixture
def lender(ours: PostgresServer) -> Iterator[Lender]:
    lender = Lender(ours)
    yield lender
    lender.close()


def name(url: str) -> str:
    return url.partition("@/")[2]


def content(url: str) -> dict[str, list[tuple[object, ...]]]:
    """All rows and the next number of every sequence."""
    with psycopg.connect(url, autocommit=True) as session:
        tables = session.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        found = {table: session.execute(f"TABLE {table}".encode()).fetchall() for (table,) in tables}
        found["sequences"] = session.execute(
            "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1"
        ).fetchall()
    return found


def used(lender: Lender, *statements: str, jobs: int = 1) -> str:
    """What a test leaves behind; the name of its database."""
    url = lender.lend()
    database = open_database(url)
    assert isinstance(database, PostgresDatabase)
    with lender.warm(url, database):
        store = SqlStore(database)
        worker = a_worker(store)
        settle(store, worker, claimed(store, worker).ref)
        for _ in range(jobs):
            submitted(store, target="acme", tags=("a",))
        store.ingest()
        with psycopg.connect(url, autocommit=True) as session:
            for statement in statements:
                session.execute(statement.encode())
    database.close()
    lender.take_back(url)
    return name(url)


@pytest.mark.parametrize("jobs", [1, 200])
def test_nothing_that_was_written_is_left(lender: Lender, ours: PostgresServer, jobs: int) -> None:
    """Of a few rows, which are deleted, and of many, whose tables are truncated."""
    fresh = ours.create()
    as_new = content(fresh)
    moved = ("UPDATE unstuck_test_clock SET offset_us = 7", "DELETE FROM unstuck_sequencer")
    for _ in range(3):
        first = used(lender, *moved, "SELECT nextval('unstuck_stucks_id_seq')", jobs=jobs)
        url = lender.lend()
        assert name(url) == first
        assert content(url) == as_new
        lender.take_back(url)
    ours.drop(fresh)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE FUNCTION cheat() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION unstuck_ahead() RETURNS BIGINT LANGUAGE sql AS 'SELECT CAST(5 AS BIGINT)'",
        "ALTER TABLE unstuck_jobs DISABLE TRIGGER ALL; ALTER TABLE unstuck_jobs ADD COLUMN more INT",
        "CREATE INDEX more ON unstuck_jobs (payload)",
        "GRANT SELECT ON unstuck_jobs TO PUBLIC",
        "CREATE SCHEMA other",
        "ANALYZE unstuck_jobs",
        "VACUUM unstuck_jobs",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = 64', current_database()); END $$",
    ],
)
def test_who_changes_more_than_rows_is_the_last_to_use_it(lender: Lender, change: str) -> None:
    first = used(lender, change)
    url = lender.lend()
    assert name(url) != first
    lender.take_back(url)


def test_who_leaves_a_session_behind_is_the_last_to_use_it(lender: Lender) -> None:
    url = lender.lend()
    with closing(psycopg.connect(url)) as session:
        session.execute("SELECT 1")
        lender.take_back(url)
        other = lender.lend()
        assert name(other) != name(url)
        lender.take_back(other)


def test_who_ends_its_keeper_is_the_last_to_use_it(lender: Lender) -> None:
    url = lender.lend()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
    lender.take_back(url)
    other = lender.lend()
    assert name(other) != name(url)
    lender.take_back(other)


def test_the_address_of_an_earlier_test_is_nobodys(lender: Lender) -> None:
    url = lender.lend()
    lender.take_back(url)
    again = lender.lend()
    assert name(again) == name(url)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)
    lender.take_back(again)


def test_a_session_that_is_kept_remembers_nothing_of_its_last_test(lender: Lender) -> None:
    seen = []
    for _ in range(2):
        url = lender.lend()
        database = open_database(url)
        assert isinstance(database, PostgresDatabase)
        with lender.warm(url, database):
            [connection] = database._pool._idle
            session = connection.driver
            seen.append(session.info.backend_pid)
            row = session.execute(
                "SELECT current_setting('work_mem') AS memory, current_setting('statement_timeout') AS stop,"
                " (SELECT count(*) FROM pg_prepared_statements) AS prepared,"
                " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks"
            ).fetchone()
            assert row is not None
            assert tuple(row.values()) == ("4MB", "2400ms", 0, 0)
            for statement in ("SET work_mem = '1MB'", "PREPARE mine AS SELECT 1", "SELECT pg_advisory_lock(7)"):
                session.execute(statement.encode())
        database.close()
        lender.take_back(url)
    assert seen[0] == seen[1]
