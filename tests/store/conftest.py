"""Twins, the same store on SQLite and on PostgreSQL, with a hand on each one's clock; and a server of one's own."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.lending import Lender
from tests.support.postgres import Postgres, PostgresServer
from unstuck.chance import SeededChance
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.sqlite import SqliteDatabase
from unstuck.store.port import Store
from unstuck.store.sql_store import SqlStore


class NoJitter(SeededChance):
    def fraction(self) -> float:
        return 0.0


@pytest.fixture
def twins(
    tmp_path: Path, sqlite_template: Path, databases: Lender
) -> Callable[[], AbstractContextManager[list[tuple[Store, Callable[[float], None]]]]]:
    numbers = itertools.count()

    @contextmanager
    def open_twins() -> Iterator[list[tuple[Store, Callable[[float], None]]]]:
        url = databases.lend()
        with ExitStack() as stack:
            stack.callback(databases.take_back, url)
            copy = shutil.copyfile(sqlite_template, tmp_path / f"{next(numbers)}.db")
            file = open_database(f"sqlite:///{copy}")
            assert isinstance(file, SqliteDatabase)
            server = open_database(url, application="unstuck-test")
            hand = databases.keeper(url)
            stores = [SqlStore(file, NoJitter(1)), SqlStore(server, NoJitter(1))]
            for store in stores:
                stack.callback(store.close)

            def move_file(seconds: float) -> None:
                file.offset_us += round(seconds * 1_000_000)

            def move_server(seconds: float) -> None:
                hand.execute(
                    "UPDATE unstuck_test_clock SET offset_us = offset_us + %s", (round(seconds * 1_000_000),)
                )

            yield [(stores[0], move_file), (stores[1], move_server)]

    return open_twins


@pytest.fixture(params=["sqlite", "postgres"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Of two databases of one kind: one with few things, one with many."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'few.db'}", f"sqlite:///{tmp_path / 'many.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    few, many = server.create(), server.create()
    yield few, many
    server.drop(few)
    server.drop(many)


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    with postgres.own_server() as server:
        yield server


@pytest.fixture
def server_url(postgres_url: str) -> str:
    """Row locks are PostgreSQL's: SQLite has one writer, and one lock, on the file."""
    return postgres_url


@pytest.fixture
def server(server_url: str) -> Iterator[SqlStore]:
    with closing(SqlStore(open_database(server_url, store_call=20.0))) as opened:
        yield opened


@pytest.fixture
def one(server_url: str) -> Iterator[SqlStore]:
    """With `other`: two processes of the same database."""
    with closing(SqlStore(open_database(server_url, store_call=20.0))) as opened:
        yield opened


@pytest.fixture
def other(server_url: str) -> Iterator[SqlStore]:
    with closing(SqlStore(open_database(server_url, store_call=20.0))) as opened:
        yield opened
