"""A session with a SQLite file: what runs between BEGIN and COMMIT, and what its errors mean for the caller."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from unstuck.clock import boot
from unstuck.model.errors import (
    OutcomeUnknown,
    SchemaMismatch,
    StoreBusy,
    StoreError,
    StoreLocked,
    StoreUnavailable,
)
from unstuck.store.database import Row, T
from unstuck.store.drivers import migrations
from unstuck.store.drivers.statements import Statements
from unstuck.store.rows import packed

E = TypeVar("E", bound=BaseException)

#: Device and inode.
FileId = tuple[int, int]

#: After these a connection's picture of the file may be wrong, or from a time when it could not be written.
_SPOILING = ("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_NOTADB", "SQLITE_CORRUPT")

_never = threading.Event()


class LogLost(StoreUnavailable):
    """The file's log and its index are not those that this process has open any more; nothing was written."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the log of {path} was taken away while a connection of this process was open that does not end: what it"
            " wrote now nobody else would read; nothing was written"
        )


class FileConnection(sqlite3.Connection):
    """A connection, and which file is the index of its log."""

    index: FileId | None = None


def pause(seconds: float) -> bool:
    return _never.wait(seconds)


class SqliteTransaction:
    """A connection between BEGIN and COMMIT."""

    __slots__ = ("_connection", "_statements")

    one_table_per_statement = True

    def __init__(self, connection: sqlite3.Connection, statements: Statements) -> None:
        self._connection = connection
        self._statements = statements

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        cursor = self._execute(statement, values)
        rows = _rows(cursor)
        if not rows:
            return []
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def tuples(self, statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return _rows(self._execute(statement, values))

    def one(self, statement: str, /, **values: Any) -> Row | None:
        rows = self.all(statement, **values)
        if len(rows) > 1:
            raise LookupError(f"{statement} gave {len(rows)} rows where at most one was expected")
        return rows[0] if rows else None

    def run(self, statement: str, /, **values: Any) -> int:
        cursor = self._execute(statement, values)
        _rows(cursor)  # a RETURNING statement is not finished before its last row was read
        return max(0, cursor.rowcount)

    def script(self, sql: str) -> None:
        for statement in migrations.statements(sql):
            self._connection.execute(statement)

    def is_refusal(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.Error) and _in_our_words(error) is error

    def apart(self, work: Callable[[], object]) -> Exception | None:
        self._connection.execute("SAVEPOINT apart")
        try:
            work()
        except sqlite3.Error as error:
            if not self.is_refusal(error):
                raise
            self._connection.execute("ROLLBACK TO apart")
            return error
        finally:
            if self._connection.in_transaction:  # a full disk ends all of it
                self._connection.execute("RELEASE apart")
        return None

    def _execute(self, statement: str, values: dict[str, Any]) -> sqlite3.Cursor:
        for name, value in values.items():
            if isinstance(value, list | tuple):  # arrays travel as JSON text: read them with json_each(:name)
                values[name] = packed(value)
        return self._connection.execute(self._statements[statement], values)


def _rows(cursor: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    """All of them. A statement that broke off is ended: as long as somebody keeps its error, and with that its
    cursor, its connection would stay in the past of that look and could never write again."""
    try:
        return cursor.fetchall()
    except BaseException:
        cursor.close()
        raise


def marked(stored: bytes) -> str:
    """What is no text begins with a sign that no JSON and no name begins with: nobody takes it for what was meant."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return "\ufffd" + stored.decode(errors="replace")


def patiently(attempt: Callable[[], T], deadline: float) -> T:
    """Again and again while another process holds the lock, until the deadline."""
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or boot() >= deadline:
                raise
        pause(0.002)


def name_of(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


def is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and name_of(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def is_in_the_past(error: BaseException) -> bool:
    """The connection has a look open, from before others wrote: waiting does not help it."""
    return isinstance(error, sqlite3.Error) and name_of(error) == "SQLITE_BUSY_SNAPSHOT"


def is_damaged_text(error: BaseException) -> bool:
    """Somebody else has written bytes that are no text. sqlite3 has no name for it."""
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith("Could not decode to UTF-8")


def is_interrupt(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and name_of(error).startswith("SQLITE_INTERRUPT")


def is_spoiling(error: BaseException) -> bool:
    """Another connection may fare better."""
    return isinstance(error, sqlite3.Error) and name_of(error).startswith(_SPOILING)


def file_at(path: str) -> FileId | None:
    """Which file has this name. Not the one that a connection opened, if somebody moved or replaced that: then it
    writes what nobody else reads. What SQLite keeps beside it does not count: who opened that goes on with it,
    whatever its name, and loses nothing."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def index_at(path: str) -> FileId | None:
    """Which file is the index of its log, for whoever comes anew. If it is another than a connection has, somebody
    believed to be the last user, folded the log in and took both away. He was wrong, because the locks of this
    process had gone: a neighbour in it, a backup say, opened and closed the file, and POSIX drops them with that."""
    return file_at(f"{path}-shm")


def descriptors_of(file: FileId) -> list[int]:
    """Those that this process has of it: a connection shares the log of those that it finds in its process, whatever
    has its name by now."""
    return [int(name) for name in os.listdir("/dev/fd") if _file_of(int(name)) == file]


def _file_of(descriptor: int) -> FileId | None:
    try:
        facts = os.fstat(descriptor)
    except OSError:  # the listing's own, closed by now
        return None
    return facts.st_dev, facts.st_ino


def translated(error: BaseException) -> BaseException:
    """Nothing was written: say why, in our own words. What is not the store's fault stays as it is."""
    if not isinstance(error, sqlite3.Error):
        return error
    return _with_cause(_in_our_words(error), error)


def _in_our_words(error: sqlite3.Error) -> BaseException:
    name = name_of(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreLocked("another process holds the SQLite file's lock; nothing was written")
    if name.startswith(("SQLITE_FULL", "SQLITE_READONLY")):
        return StoreBusy(f"the SQLite file cannot be written: {error}; nothing was written")
    if name.startswith("SQLITE_INTERRUPT"):
        return StoreUnavailable("the statement ran past its deadline and was stopped; nothing was written")
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_PERM")):
        return StoreUnavailable(f"the SQLite file cannot be used: {error}")
    if str(error).startswith(("no such table", "no such column")):
        return SchemaMismatch(f"the database's schema does not fit this version ({error}); run: unstuck db migrate")
    return error


def lost_commit(error: BaseException) -> StoreError:
    if isinstance(error, sqlite3.Error) and name_of(error).startswith(("SQLITE_FULL", "SQLITE_BUSY")):
        return _with_cause(StoreBusy(f"the SQLite file cannot be written: {error}; nothing was written"), error)
    return _with_cause(OutcomeUnknown(f"the commit did not come to its end: {error}"), error)


def _with_cause(error: E, cause: BaseException) -> E:
    if error is not cause:
        error.__cause__ = cause
    return error
