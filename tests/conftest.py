"""Fixtures of every test: a fresh database of each kind, the store over it, and its clock."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import hypothesis
import psycopg
import pytest

from tests import tiers
from tests.support import acceptances, postgres, standstill
from tests.support.lending import Lender, lender
from tests.support.postgres import PostgresServer
from tests.support.warm import warm_process
from unstuck.clock import wall
from unstuck.store.database import Database
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.postgres import PostgresDatabase
from unstuck.store.drivers.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from unstuck.store.sql_store import SqlStore

RUN = pytest.StashKey[postgres.Run]()


def pytest_configure(config: pytest.Config) -> None:
    """The first process of a run owns the test PostgreSQL; xdist's workers inherit its address."""
    gc.disable()  # until all tests are collected: a quarter of a million objects, none of them garbage
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what is in its background so; tests of Ctrl-C hand it down to what they start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # So does nohup with this one, and our workers rightly go by it.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # A busy machine is no failure of what is tested; what must be fast says so itself.
    hypothesis.settings.register_profile("unstuck", deadline=None)
    hypothesis.settings.load_profile("unstuck")
    config.addinivalue_line("markers", "sample: a short run of what the slow tier does at length (tests/tiers.py)")
    config.addinivalue_line("markers", "at_a_distance: by a server in the slow tier too (tests/tiers.py)")
    if not hasattr(config, "workerinput") and postgres.RUN not in os.environ:
        config.stash[RUN] = postgres.Run()
        config.pluginmanager.register(standstill.Plugin())
        # Files of tests go where the server's are: SQLite flushes each commit, and a disk takes milliseconds for it.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", postgres.open_folder())


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is not None:
        run.end()


# First: what other plugins choose by marks, and `-m` itself, comes after it.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.put_into_tiers(items)
    if Path(__file__).parent in {config.invocation_params.dir / argument for argument in config.args}:
        config.stash[acceptances.SHOWN] = acceptances.shown_by(items)
    if hasattr(config, "workerinput"):
        tiers.mix(items)


def pytest_collection_finish() -> None:
    gc.freeze()  # no collection need look at them again
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _the_warm_process_ends() -> Iterator[None]:
    yield
    if warm_process.cache_info().currsize:
        warm_process().close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    server = postgres.server_of_run()
    yield server
    lender(server, os.getpid()).close()
    server.sweep()
    if os.environ.get(postgres.EXISTING):
        server.drop(server.url(server.template))


@pytest.fixture(scope="session")
def databases(postgres_server: PostgresServer) -> Lender:
    """Lends migrated databases without rows; `postgres_server.create` makes a really new one."""
    return lender(postgres_server, os.getpid())


@pytest.fixture
def postgres_url(databases: Lender) -> Iterator[str]:
    """The URL of a fresh, migrated PostgreSQL database, for tests of PostgreSQL alone."""
    url = databases.lend()
    yield url
    databases.take_back(url)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database to copy: migrating anew takes longer than most tests."""
    file = tmp_path_factory.mktemp("template") / "unstuck.db"
    _migrate(f"sqlite:///{file}")
    return file


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a fresh, migrated database; for tests with processes of their own."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    file = tmp_path / "unstuck.db"
    shutil.copyfile(request.getfixturevalue("sqlite_template"), file)
    return f"sqlite:///{file}"


@pytest.fixture
def database(request: pytest.FixtureRequest, store_url: str) -> Iterator[Database]:
    """A fresh, migrated database, open; the same one as `store_url`."""
    opened = open_database(store_url, application="unstuck-test", max_connections=20)
    if isinstance(opened, SqliteDatabase):
        yield opened
    else:
        assert isinstance(opened, PostgresDatabase)
        with request.getfixturevalue("databases").warm(store_url, opened):
            yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> SqlStore:
    from unstuck.store.sql_store import SqlStore

    return SqlStore(database)


class StoreClock(Protocol):
    def now(self) -> datetime: ...

    def advance(self, seconds: float = 0, **more: float) -> None:
        """Move the store's clock; `more` as timedelta takes it (minutes=2)."""
        ...


class _SqliteClock:
    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def now(self) -> datetime:
        return _instant(self._database.now_us())

    def advance(self, seconds: float = 0, **more: float) -> None:
        self._database.offset_us += _microseconds(seconds, more)


class _PostgresClock:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def now(self) -> datetime:
        row = self._connection.execute("SELECT unstuck_now()").fetchone()
        assert row is not None
        return _instant(row[0])

    def advance(self, seconds: float = 0, **more: float) -> None:
        self._connection.execute(
            "UPDATE unstuck_test_clock SET offset_us = offset_us + %s", (_microseconds(seconds, more),)
        )


@pytest.fixture
def clock(request: pytest.FixtureRequest, database: Database, store_url: str) -> StoreClock:
    """The clock of this test's database: leases, timers and timestamps follow it."""
    if isinstance(database, SqliteDatabase):
        return _SqliteClock(database)
    return _PostgresClock(request.getfixturevalue("databases").keeper(store_url))


Leap = Callable[[float], None]


@pytest.fixture
def wall_file(tmp_path: Path) -> Path:
    """By how much the host's clock has leapt, for whoever reads it from here."""
    file = tmp_path / "wall"
    file.write_text("0")
    return file


@pytest.fixture
def leap(request: pytest.FixtureRequest, store_url: str, wall_file: Path, monkeypatch: pytest.MonkeyPatch) -> Leap:
    """Moves the clock of the database for everybody at once, by so many seconds from where it stands."""
    if store_url.startswith("sqlite"):

        def moved_wall() -> datetime:
            return wall() + timedelta(seconds=float(wall_file.read_text()))

        def move_host(seconds: float) -> None:
            new = wall_file.with_suffix(".new")
            new.write_text(str(float(wall_file.read_text()) + seconds))
            new.rename(wall_file)

        monkeypatch.setattr("unstuck.store.drivers.sqlite.wall", moved_wall)
        return move_host
    return _PostgresClock(request.getfixturevalue("databases").keeper(store_url)).advance


def _instant(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def _microseconds(seconds: float, more: dict[str, float]) -> int:
    return round(timedelta(seconds=seconds, **more) / timedelta(microseconds=1))


def _migrate(url: str) -> None:
    opened = open_database(url)
    try:
        opened.migrate()
    finally:
        opened.close()
