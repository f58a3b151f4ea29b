"""Rehearsal: try what a store would do, and leave no trace."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from unstuck.store.database import Database, FileReach, Row, ServerReach, T, Transaction
from unstuck.store.drivers.leaps import EVER
from unstuck.store.drivers.postgres_call import PostgresTransaction
from unstuck.store.drivers.postgres_session import PostgresSession
from unstuck.store.drivers.sqlite import SqliteDatabase
from unstuck.store.drivers.sqlite_session import SqliteTransaction
from unstuck.store.drivers.statements import Statements
from unstuck.store.hint import ANYWHERE, Hint
from unstuck.store.sql_store import SqlStore


class Rehearsal:
    """A Database whose every verb happens inside one transaction that is never committed."""

    def __init__(self, dialect: str, transaction: Transaction, execute: Callable[[str], object]) -> None:
        self.dialect = dialect
        self.is_file = self.one_table_per_statement = dialect == "sqlite"
        self.store_call = 3.0
        self._transaction = transaction
        self._execute = execute

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What happens inside is undone at its end."""
        self._execute("SAVEPOINT try")
        try:
            yield
        finally:
            self._execute("ROLLBACK TO SAVEPOINT try")

    def write(
        self,
        work: Callable[[Transaction], T],
        within: float | None = None,
        *,
        patience: float | None = None,
        stop_after: float | None = None,
    ) -> T:
        return work(self._transaction)

    def read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        return work(self._transaction)

    def once(self, statement: str, /, *, stop_after: float | None = None, **values: Any) -> list[Row]:
        return self._transaction.all(statement, **values)

    def hint(self, hint: Hint = ANYWHERE) -> None:
        """Nobody hears of what did not happen."""

    def wait(self, timeout: float) -> Hint | None:
        return None

    def stay_awake(self) -> None:
        """Nobody waits here."""

    def migrate(self) -> list[str]:
        return []

    def schema_version(self) -> int:
        return 0

    def shipped_version(self) -> int:
        return 0

    def has_current_schema(self) -> bool:
        return True

    def migration_sql(self) -> str:
        return ""

    def reach(self) -> FileReach | ServerReach:
        raise NotImplementedError("nobody examines what does not last")

    def fold_log(self, within: float) -> bool:
        return True

    def remember(self, worker: str, boot_id: str) -> None: ...

    def expected_now(self) -> tuple[int, int]:
        return EVER

    def likely_now(self) -> int | None:
        return None

    def before_rescue(self) -> None: ...

    def before_timers(self) -> None: ...

    def check_clock(self) -> bool:
        return False

    def close(self) -> None: ...


class Stage:
    """Where one database is rehearsed, again and again; close it at the end."""

    def __init__(self, database: Database, url: str) -> None:
        self._database = database
        self._server = None if isinstance(database, SqliteDatabase) else _Server(url)

    @contextmanager
    def rehearsal(self) -> Iterator[tuple[SqlStore, Rehearsal]]:
        """A store that shows what the database would do now; nothing of it lasts."""
        if isinstance(self._database, SqliteDatabase):
            with _copied(self._database) as rehearsed:
                yield SqlStore(rehearsed), rehearsed
        elif self._server is not None:
            with self._server.unfinished() as rehearsed:
                yield SqlStore(rehearsed), rehearsed

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


@contextmanager
def _copied(database: SqliteDatabase) -> Iterator[Rehearsal]:
    """A copy in memory: the file has one writer, and that is not us."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    source = sqlite3.connect(f"file:{database.path}?mode=ro", uri=True)
    try:
        source.backup(copy)
        copy.create_function("unstuck_now", 0, database.now_us)
        copy.create_function("unstuck_ahead", 0, database.ahead_us)
        copy.execute("PRAGMA trusted_schema = ON")
        copy.execute("BEGIN IMMEDIATE")
        yield Rehearsal("sqlite", SqliteTransaction(copy, Statements("sqlite")), copy.execute)
    finally:
        source.close()
        copy.close()


class _Server:
    """A transaction that is rolled back. Past the driver, which would forget its prepared statements each time."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._session = PostgresSession(self._connection, prepare=1)
        self._statements = Statements("postgres")

    @contextmanager
    def unfinished(self) -> Iterator[Rehearsal]:
        self._command("BEGIN")
        try:
            yield Rehearsal("postgres", PostgresTransaction(self._session, self._statements), self._command)
        finally:
            self._command("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def _command(self, sql: str) -> None:
        result = self._connection.pgconn.exec_(sql.encode())
        assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, result.error_message
