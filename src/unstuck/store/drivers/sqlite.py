"""SqliteDatabase: one file, one writer thread per process, several processes.

Theory of operation. All writes of a process go through one thread with its own connection: closures that wait at the
same time share a transaction (each under a savepoint) and therefore one fsync. The caller waits with a deadline; a
closure that has not begun by then never runs. Nobody checkpoints automatically: SQLite below 3.51.3 can corrupt a WAL
that one connection resets while another writes it. So whoever writes holds `<file>-lock` for its transaction, and
whoever checkpoints holds it too, taken without waiting. (Writers also keep each other out by it: SQLite's own lock is
lost when a neighbour in the process closes the index of the log, see `sqlite_hold`.)

SQLite keeps its locks in per-process memory that a fork copies but the kernel does not: a child that opened the file
anew would believe in locks that only its parent has. Hence all connections are closed before a fork and opened again
after it, on both sides.

Time is BOOTTIME and an anchor, which the first process of a boot writes down: it goes on while the host's clock
leaps, and is the same in every process. `ahead` is how far the one is from the other (see `leaps`).
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any

from unstuck import machine
from unstuck.clock import boot, wall
from unstuck.model.errors import StoreError, StoreUnavailable
from unstuck.store.database import FileReach, Row, T, Transaction
from unstuck.store.drivers import leaps, migrations
from unstuck.store.drivers.filesystems import filesystem, network_filesystem
from unstuck.store.drivers.migrations import Migration, Repeatable, SchemaTransaction
from unstuck.store.drivers.sqlite_hold import Hold
from unstuck.store.drivers.sqlite_readers import Readers, ReadersClosed
from unstuck.store.drivers.sqlite_session import (
    FileConnection,
    FileId,
    LogLost,
    SqliteTransaction,
    descriptors_of,
    index_at,
    is_busy,
    is_damaged_text,
    marked,
    patiently,
    pause,
    translated,
)
from unstuck.store.drivers.sqlite_writer import Gate, Task, Writer
from unstuck.store.drivers.statements import Statements, UnknownStatement
from unstuck.store.drivers.wake import Wake
from unstuck.store.hint import ANYWHERE, Hint
from unstuck.store.untold import Untold, carefully
from unstuck.telemetry import emit

OLDEST_SQLITE = (3, 38, 0)  # RETURNING and ->>
MIGRATE_WITHIN = 60.0
#: Of a call's time a transaction may have the write lock: so it is stopped before its caller has left, who then knows
#: that nothing was written and that the store is there. Where a batch can be taken apart, so many seconds at most:
#: many times what a batch takes on a busy machine.
LOCK_SHARE = 0.8
SLOW = 0.5
BREATH = 0.05


class SqliteDatabase:
    """The Database of one file."""

    dialect = "sqlite"
    is_file = True
    one_table_per_statement = True

    def __init__(
        self,
        path: Path | str,
        *,
        store_call: float = 3.0,
        now_offset: float = 0.0,
        statements: Statements | None = None,
    ) -> None:
        self.path = Path(os.path.abspath(path))
        self.store_call = store_call
        self.offset_us = round(now_offset * 1_000_000)
        self._anchor_us: int | None = None
        self._has_clock = True
        self._ahead_us = self._noted_us = 0
        _refuse_unusable(self.path)
        self._statements = statements or Statements(self.dialect)
        self.wake = Wake(self.path)
        self._waiting = threading.Lock()
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._hold = Hold(str(self.path))
        self._readers = Readers(self._open, self.path)
        self._was_there = False
        self._closed = False
        self._has_lost_log = False
        self._is_in_use = False  # by reads or writes that would not end for a fork
        self._forked_in_use = False
        _databases.add(self)

    def write(
        self,
        work: Callable[[Transaction], T],
        within: float | None = None,
        *,
        patience: float | None = None,
        stop_after: float | None = None,
    ) -> T:
        """`patience` and `stop_after`, because what is slow keeps everybody from writing: less time with the lock."""
        self._learn_time()
        limits = [limit for limit in (SLOW if patience is not None else None, stop_after) if limit is not None]
        within = self.store_call if within is None else within
        try:
            return self._hand_over(work, within, *limits)
        except Untold:
            return self._hand_over(carefully(work), within, *limits)

    def once(
        self, statement: str, /, *, stop_after: float | None = None, hint: Hint | None = None, **values: Any
    ) -> list[Row]:
        rows = self.write(lambda t: t.all(statement, **values), stop_after=stop_after)
        if hint is not None:
            self.hint(hint)
        return rows

    def read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        self._learn_time()
        return self._read(work, within)

    def _read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        deadline = boot() + (self.store_call if within is None else within)
        while True:
            self._refuse_closed()
            readers = self._readers
            try:
                with readers.borrow(deadline) as connection:
                    return self._look_well(connection, work, deadline)
            except LogLost:
                self._begin_anew(readers, deadline)
                continue
            except ReadersClosed:
                self._outwait_fork(deadline)
                continue
            except sqlite3.Error as error:
                if not is_busy(error) or boot() >= deadline:
                    raise translated(error) from error
            pause(0.001)  # somebody recovers the WAL after a crash: a matter of moments

    def before_rescue(self) -> None:
        self.write(lambda t: t.run("probe"))

    def before_timers(self) -> None:
        self.check_clock()

    def hint(self, hint: Hint = ANYWHERE) -> None:
        self.wake.hint(hint)

    def wait(self, timeout: float) -> Hint | None:
        if not self._waiting.acquire(blocking=False):
            pause(timeout)  # one waiter per process hears hints; others go by their timeout
            return None
        try:
            return self.wake.wait(timeout)
        except OSError:
            pause(timeout)
            return None
        finally:
            self._waiting.release()

    def stay_awake(self) -> None:
        """Nothing to take away: a hint is a datagram, and a full buffer costs no more."""

    def migrate(self) -> list[str]:
        def work(tx: SchemaTransaction) -> list[str]:
            return migrations.apply(tx, *self._schema())

        applied = self._hand_over(work, MIGRATE_WITHIN)
        self._learn_time()
        return applied

    def schema_version(self) -> int:
        shipped = migrations.shipped(self.dialect)
        return self._read(lambda t: migrations.version(t, shipped))

    def shipped_version(self) -> int:
        return max((migration.number for migration in migrations.shipped(self.dialect)), default=0)

    def has_current_schema(self) -> bool:
        shipped, computed = self._schema()
        return self._read(lambda t: migrations.is_current(t, shipped, computed))

    def _schema(self) -> tuple[list[Migration], list[Repeatable]]:
        return migrations.shipped(self.dialect), migrations.repeatables(self.dialect)

    def migration_sql(self) -> str:
        return migrations.script(
            *self._schema(),
            [self._statements["migration_table"], self._statements["repeatable_table"]],
            "CAST(strftime('%s', 'now') AS INTEGER) * 1000000",
        )

    def reach(self) -> FileReach:
        log, disk = Path(f"{self.path}-wal"), os.statvfs(self.path.parent)
        return FileReach(
            path=str(self.path),
            sqlite=sqlite3.sqlite_version,
            kind=filesystem(self.path),
            log=log.stat().st_size if log.exists() else 0,
            disk=disk.f_blocks * disk.f_frsize,
            disk_free=disk.f_bavail * disk.f_frsize,
        )

    def fold_log(self, within: float) -> bool:
        """On a connection of its own, under the lock that keeps every writer out meanwhile: see the head of this."""
        deadline = boot() + within
        gate, connection = Gate(self.path), self._open(deadline)
        try:
            while True:
                try:
                    if gate.take() and not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                        return True
                except sqlite3.Error as error:
                    if not is_busy(error):
                        raise translated(error) from error
                finally:
                    gate.release()
                if boot() >= deadline:
                    return False
                pause(0.02)
        finally:
            gate.close()
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            writer, self._writer = self._writer, None
        if writer is not None:
            writer.stop(self.store_call, self._hold.let_go)
        self._hold.let_go()
        self._readers.close(self.store_call)
        self._hold.close()
        self.wake.close()
        _databases.discard(self)

    def _hand_over(self, work: Callable[[Any], T], within: float, *limits: float) -> T:
        """`limits`: of the seconds that it may have the write lock."""
        context = copy_context()  # the writer is another thread: it must know who asks, for the audit
        deadline = boot() + within
        while True:
            task = Task(lambda t: context.run(work, t), deadline, min([within * LOCK_SHARE, *limits]))
            with self._lock:
                self._refuse_closed()
                if self._writer is None:
                    self._writer = Writer(self._open, self.path, self._statements)
                writer, readers = self._writer, self._readers
                writer.submit(task)
            try:
                answer: T = task.result(writer.blocked_by)
            except LogLost:  # before the work began
                self._begin_anew(readers, deadline)
                continue
            return answer

    def _begin_anew(self, readers: Readers, deadline: float) -> None:
        """All connections of this process to the file are closed before one is opened: it would share the lost log of
        the others. `readers`: with whom the loss was found; if they are gone, somebody has begun anew already."""
        if deadline - boot() < 2 * BREATH:
            raise LogLost(str(self.path))
        with _one_fork:
            if self._readers is not readers:
                return
            if not self._has_lost_log:
                emit("sqlite.log_lost", level=logging.WARNING, file=self.path)
            is_again, self._has_lost_log = self._has_lost_log, True
            same = [other for other in _databases if os.path.realpath(other.path) == os.path.realpath(self.path)]
            for database in same:  # holding on: they must not take away what somebody may have begun
                database._close_connections(lambda: None)
            for database in same:
                database.after_fork_in_parent()
        if is_again:
            pause(BREATH)  # a connection that is not ours keeps it

    def _outwait_fork(self, deadline: float) -> None:
        """A read that began now would be inherited by the child; after the fork there are new readers."""
        if not self._lock.acquire(timeout=max(0.0, deadline - boot())):
            raise StoreUnavailable("a fork of this process did not end in time; nothing was read")
        self._lock.release()

    def _look_well(self, connection: sqlite3.Connection, work: Callable[[Transaction], T], deadline: float) -> T:
        """Bytes that are no text in one row must not hide all others: they are shown as signs that stand for them.
        Only once they have been met, because it costs twice the time."""
        try:
            return self._look(connection, work, deadline)
        except sqlite3.OperationalError as error:
            if not is_damaged_text(error):
                raise
        connection.text_factory = marked
        try:
            return self._look(connection, work, deadline)
        finally:
            connection.text_factory = str

    def _look(self, connection: sqlite3.Connection, work: Callable[[Transaction], T], deadline: float) -> T:
        connection.set_progress_handler(lambda: boot() > deadline, 50_000)
        connection.execute("BEGIN DEFERRED")
        try:
            return work(SqliteTransaction(connection, self._statements))
        finally:
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _open(self, deadline: float) -> FileConnection:
        """A connection with every setting, or none at all. Never to a new file in the place of one that was there:
        SQLite would throw the log away that lies beside it."""
        if self._was_there and not self.path.exists():
            raise StoreUnavailable(f"{self.path} is not there any more: somebody moved or deleted it")
        connection = sqlite3.connect(
            self.path,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=FileConnection,
        )
        try:
            self._set_up(connection, deadline)
            connection.index = self._index_of_new(connection, deadline)
            self._hold.take(deadline)
        except BaseException:
            connection.close()
            raise
        self._was_there = True
        return connection

    def _set_up(self, connection: sqlite3.Connection, deadline: float) -> None:
        connection.create_function("unstuck_now", 0, self.now_us)
        connection.create_function("unstuck_ahead", 0, self.ahead_us)
        mode = patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()[0], deadline)
        if mode != "wal":
            raise StoreUnavailable(f"{self.path} cannot be used in WAL mode (SQLite answered {mode!r})")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA trusted_schema = ON")  # our own unstuck_now() in triggers and defaults

    def _index_of_new(self, connection: FileConnection, deadline: float) -> FileId:
        patiently(lambda: connection.execute("PRAGMA schema_version").fetchone(), deadline)  # opens the log
        index = index_at(str(self.path))
        if index is None or not descriptors_of(index):
            raise LogLost(str(self.path))
        self._has_lost_log = False
        return index

    # --- time -------------------------------------------------------------------------------------------------
    def now_us(self) -> int:
        return self._engine_us() + self.offset_us

    def ahead_us(self) -> int:
        """How far the engine's time is from the host's clock. What is no leap does not change it."""
        ahead = self._engine_us() - _wall_us()
        if abs(ahead - self._ahead_us) > leaps.TOLERANCE:
            self._ahead_us = ahead
        return self._ahead_us

    def remember(self, worker: str, boot_id: str) -> None:
        """Nothing to remember: all processes of a boot have one anchor."""

    def expected_now(self) -> tuple[int, int]:
        return leaps.EVER

    def likely_now(self) -> int | None:
        return self.now_us()

    def check_clock(self) -> bool:
        """The engine's time has not leapt with the host's clock. That it did is written down by who sees it first."""
        self._learn_time()
        ahead = self._engine_us() - _wall_us()
        if self._anchor_us is None or abs(ahead - self._noted_us) <= leaps.TOLERANCE:
            return False

        def work(t: Transaction) -> int:
            row = t.one("read_clock")
            assert row is not None
            self._noted_us = row["ahead"]
            if abs(ahead - row["ahead"]) <= leaps.TOLERANCE:
                return 0
            leap: int = row["ahead"] - ahead
            t.run("move_clock", ahead=ahead, leap=leap, correction=0, by=machine.host())
            return leap

        leap = self._hand_over(work, self.store_call)
        if leap:
            self._noted_us = ahead
            leaps.tell(leap, ahead, machine.host())
        return leap != 0

    def _engine_us(self) -> int:
        return _wall_us() if self._anchor_us is None else self._anchor_us + _boot_us()

    def _learn_time(self) -> None:
        """Of this boot, once; before there are tables, and where the machine does not say which boot it is, the
        host's clock has to do."""
        if self._anchor_us is not None or not self._has_clock or not (this_boot := machine.boot_id()):
            return

        def learn(t: Transaction) -> Row | None:
            row = t.one("read_clock")
            return row if row is not None and row["boot"] == this_boot else None

        def anchor(t: Transaction) -> Row:
            if (row := learn(t)) is not None:
                return row
            before = t.one("read_clock")
            assert before is not None
            # Of what was while the machine was off only its clock can tell; but it was not before the last beat.
            at = _wall_us()
            ahead = max(0, before["last_beat"] - at)
            facts = {"boot": this_boot, "anchor": at + ahead - _boot_us(), "ahead": ahead}
            t.run("anchor_clock", **facts)
            return facts

        try:
            row = self._read(learn) or self._hand_over(anchor, self.store_call)
        except UnknownStatement:
            self._has_clock = False  # these are not our tables
            return
        except StoreError:
            return  # there are no tables yet; of other trouble who asks next finds out by himself
        self._ahead_us = self._noted_us = row["ahead"]
        self._anchor_us = row["anchor"]

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"this store of {self.path} was closed")
        if self._forked_in_use:
            raise StoreUnavailable(
                f"{self.path} was in use at the moment of the fork; open the store in the child, not before it"
            )

    # --- fork -------------------------------------------------------------------------------------------------
    def before_fork(self) -> None:
        self._close_connections(self._hold.let_go)
        self._hold.close()

    def _close_connections(self, let_go: Callable[[], None]) -> None:
        self._lock.acquire()
        writer = self._writer
        stopped = writer is None or writer.stop(self.store_call, let_go)
        let_go()
        self._is_in_use = not (self._readers.close(self.store_call) and stopped)

    def after_fork_in_parent(self) -> None:
        """A writer that was too slow to stop finishes on its own; the next call starts another."""
        self._writer = None
        self._readers = Readers(self._open, self.path)
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """What could not be closed before the fork is kept for ever: closing it here would hurt the parent."""
        self._forked_in_use = self._forked_in_use or self._is_in_use
        if self._writer is not None:
            self._writer.forget_lock()
            _inherited.append(self._writer)
        _inherited.append(self._readers)
        self._writer = None
        self._hold = Hold(str(self.path))
        self._readers = Readers(self._open, self.path)
        self.wake.abandon()
        self._waiting = threading.Lock()
        self._lock = threading.Lock()


def _wall_us() -> int:
    return round(wall().timestamp() * 1_000_000)


def _boot_us() -> int:
    return round(boot() * 1_000_000)


def _refuse_unusable(path: Path) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailable(f"SQLite {sqlite3.sqlite_version} is too old: unstuck needs {oldest} or newer")
    if not path.parent.is_dir():
        raise StoreUnavailable(f"the folder {path.parent} does not exist; make it, or choose another place")
    kind = network_filesystem(path)
    if kind is not None:
        raise StoreUnavailable(
            f"{path} is on a network filesystem ({kind}), where SQLite's locks cannot be trusted; "
            "use a local disk, or PostgreSQL"
        )


_databases: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
_forking: list[SqliteDatabase] = []
_one_fork = threading.Lock()  # two threads may fork at once; each must release what it stopped
_inherited: list[object] = []


def _before_fork() -> None:
    _one_fork.acquire()
    _forking[:] = list(_databases)
    for database in _forking:
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _forking:
        database.after_fork_in_parent()
    _forking.clear()
    _one_fork.release()


def _after_fork_in_child() -> None:
    for database in _forking:
        database.after_fork_in_child()
    _forking.clear()
    _one_fork.release()


if sys.platform != "win32":
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
