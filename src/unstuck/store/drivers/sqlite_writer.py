"""The writer of a SQLite file: one thread per process, group commits, checkpoints under a file lock."""

from __future__ import annotations

import fcntl
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unstuck.chance import SystemChance
from unstuck.clock import boot
from unstuck.model.errors import OutcomeUnknown, StoreLocked, StoreUnavailable
from unstuck.store.database import StoreSlow
from unstuck.store.drivers.sqlite_holder import holder
from unstuck.store.drivers.sqlite_session import (
    FileConnection,
    FileId,
    LogLost,
    SqliteTransaction,
    file_at,
    index_at,
    is_busy,
    is_in_the_past,
    is_interrupt,
    is_spoiling,
    lost_commit,
    pause,
    translated,
)
from unstuck.store.drivers.statements import Statements
from unstuck.telemetry import emit

GROUP = 100  # closures per transaction: more gained nothing and makes the first wait for the last
CHECKPOINT_COMMITS = 500
CHECKPOINT_CHANGES = 10_000
CHECKPOINT_IDLE = 0.5
LONG_WAL = 16_384  # frames, 64 MiB: from here on the file is cut, not just used again from its start
INSIST = 0.05

_chance = SystemChance()


def _unopened(error: BaseException) -> BaseException:
    if isinstance(error, OSError):  # the lock file: a folder without the right to write, no descriptors left
        return StoreUnavailable(f"the SQLite file cannot be locked: {error}; nothing was written")
    return translated(error)


def _too_slow(task: Task) -> StoreSlow:
    """Not the store is away: something among what was to be written takes too long."""
    return StoreSlow(f"it was not written within {task.limit:.2g} s and stopped; nothing was written")


class WriteOverdue(Exception):
    """The deadline passed while we waited for a lock; nothing was written."""


class Task:
    """One closure on its way to the writer: waiting, then begun, then answered; or abandoned by its caller."""

    __slots__ = (
        *("_answered", "_error", "_guard", "_value", "abandoned", "begun"),
        *("deadline", "is_answered", "limit", "work"),
    )

    def __init__(self, work: Callable[[Any], Any], deadline: float, limit: float) -> None:
        """`limit`: for so many seconds it may keep the write lock from everybody else."""
        self.work = work
        self.deadline = deadline
        self.limit = limit
        self.begun = False
        self.abandoned = False
        self.is_answered = False
        self._guard = threading.Lock()
        self._answered = threading.Lock()  # a bare lock: half the price of an Event on this hot path
        self._answered.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def begin(self) -> bool:
        """False when the caller has left: then it must not run any more."""
        with self._guard:
            self.begun = not self.abandoned
            return self.begun

    def answer(self, value: Any = None, error: BaseException | None = None) -> None:
        self._value, self._error, self.is_answered = value, error, True
        self._answered.release()

    def result(self, blocked_by: Callable[[], str | None]) -> Any:
        if not self._answered.acquire(timeout=max(0.0, self.deadline - boot())):
            self._leave(blocked_by())
        if self._error is not None:
            raise self._error
        return self._value

    def _leave(self, blocked_by: str | None) -> None:
        with self._guard:
            if self._answered.acquire(blocking=False):
                return
            self.abandoned = True
            if self.begun:
                raise OutcomeUnknown("the SQLite file did not answer in time: it may have been written")
        if blocked_by:
            raise StoreLocked(f"{blocked_by} holds the SQLite file's write lock; nothing was written")
        raise StoreUnavailable("the SQLite file's writer did not get to it in time; nothing was written")


#: A task, what its closure gave, and what it raised.
Outcome = tuple[Task, Any, BaseException | None]


class Gate:
    """The file lock beside the database, of whoever writes or checkpoints."""

    def __init__(self, database: Path) -> None:
        self._path = f"{database}-lock"
        self._file: int | None = None

    def take(self) -> bool:
        """False if somebody else has it."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closing, unlike unlocking, leaves a lock alone that another process shares with us by a fork."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Writer:
    """The thread that writes and checkpoints; it opens its connection itself and again after an I/O error."""

    def __init__(self, open_connection: Callable[[float], FileConnection], path: Path, statements: Statements):
        self._open = open_connection
        self._path = str(path)
        self._statements = statements
        self._gate = Gate(path)
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._connection: FileConnection | None = None
        self._file: FileId | None = None
        self._statement_deadline = float("inf")
        self._commits = 0
        self._changes_seen = 0
        self._is_clean = True
        self._let_go: Callable[[], None] = lambda: None
        self.is_blocked = False
        self._thread = threading.Thread(target=self._loop, name="unstuck-sqlite-writer", daemon=True)
        self._thread.start()

    def submit(self, task: Task) -> None:
        self._tasks.put(task)

    def blocked_by(self) -> str | None:
        """Who keeps it from writing at this moment, if somebody does."""
        return holder(self._path) if self.is_blocked else None

    def stop(self, within: float, let_go: Callable[[], None]) -> bool:
        """Finish what was handed over, close the connection; False if that took too long. `let_go` is called between
        the two, if the log is the one that others have."""
        if self._thread is threading.current_thread():
            return False
        self._let_go = let_go
        self._tasks.put(None)
        self._thread.join(within)
        return not self._thread.is_alive()

    def forget_lock(self) -> None:
        """In a forked child: give up the inherited descriptor without touching the parent's lock."""
        self._gate.close()

    def _loop(self) -> None:
        while (group := self._gather()) is not None:
            self._serve(group)
            if self._commits >= CHECKPOINT_COMMITS or self._changes() >= CHECKPOINT_CHANGES:
                self._checkpoint("PASSIVE")
        if self._has_lost_log():
            self._save()
        else:
            self._let_go()
        self._drop_connection()
        self._gate.close()

    def _gather(self) -> list[Task] | None:
        first = self._next()
        if first is None:
            return None
        group = [first]
        while len(group) < GROUP and not self._tasks.empty():  # nobody else takes from it
            task = self._tasks.get_nowait()
            if task is None:
                self._tasks.put(None)
                break
            group.append(task)
        return group

    def _next(self) -> Task | None:
        """Waits for ever when there is nothing to tidy up; otherwise a quiet moment is used for that."""
        while not self._is_clean:
            try:
                return self._tasks.get(timeout=CHECKPOINT_IDLE)
            except queue.Empty:
                self._is_clean = self._checkpoint("TRUNCATE")
        return self._tasks.get()

    def _serve(self, group: list[Task]) -> None:
        """Together first; if that breaks, each alone, so that one cannot take its neighbours down."""
        try:
            for task in self._try_group(group):
                self._try_group([task])
        except BaseException as error:  # whatever it was, the thread that everybody waits for goes on
            emit("sqlite.writer_failed", level=logging.ERROR, error=error)
            self._drop_connection()
            for task in group:
                if not task.is_answered:
                    task.answer(error=lost_commit(error))

    def _try_group(self, group: list[Task]) -> list[Task]:
        """One transaction for all. Answers those that must be tried again alone: nothing of them was written."""
        try:
            connection = self._begin(group)
        except WriteOverdue:
            return []
        except BaseException as error:
            self._recover(error)
            for task in group:
                task.answer(error=_unopened(error))
            return []
        try:
            finished, broken = self._run_all(connection, group)
            if broken:
                return [task for task, _, _ in finished]
            outcomes = self._commit(connection, finished)
        finally:
            self._gate.release()
        # Last of all: who is answered wants the interpreter, and we are about to let go of it anyway.
        for task, value, raised in outcomes:
            task.answer(value, raised)
        return []

    def _begin(self, group: list[Task]) -> FileConnection:
        """BEGIN IMMEDIATE under the file lock, tried until the last caller has left.

        Our own short, jittered waits instead of SQLite's busy handler: that one backs off to 100 ms and starves.
        """
        while True:
            latest = max(task.deadline for task in group)
            try:
                connection = self._connected(latest)
                if self._gate.take():
                    try:
                        connection.execute("BEGIN IMMEDIATE")
                        if self._has_lost_log():
                            self._roll_back(connection)
                            raise LogLost(self._path)
                    except BaseException:
                        self._gate.release()
                        raise
                    self.is_blocked = False
                    return connection
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                if is_in_the_past(error):
                    self._drop_connection()
            self.is_blocked = True
            if boot() >= latest:
                raise WriteOverdue
            pause(0.0002 + 0.002 * _chance.fraction())

    def _run_all(self, connection: FileConnection, group: list[Task]) -> tuple[list[Outcome], bool]:
        """What each closure gave; the flag says that the whole transaction is gone and nothing was written."""
        finished: list[Outcome] = []
        alone = len(group) == 1
        transaction = SqliteTransaction(connection, self._statements)
        for task in group:
            if not task.begin():
                continue
            self._statement_deadline = min(task.deadline, boot() + task.limit)
            value, error = self._run(connection, transaction, task, alone)
            if error is not None and (alone or not connection.in_transaction):
                # Disk full, I/O errors and interrupts make SQLite roll back everything, neighbours included.
                self._roll_back(connection)
                self._recover(error)
                task.answer(error=translated(error))
                waiting = group[group.index(task) + 1 :]
                return finished + [(other, None, None) for other in waiting], True
            finished.append((task, value, error))
        return finished, False

    def _run(
        self, connection: sqlite3.Connection, transaction: SqliteTransaction, task: Task, alone: bool
    ) -> tuple[Any, BaseException | None]:
        try:
            if alone:
                return task.work(transaction), None
            connection.execute("SAVEPOINT one")
            value = task.work(transaction)
            connection.execute("RELEASE one")
        except BaseException as error:
            if not alone and connection.in_transaction:
                connection.execute("ROLLBACK TO one")
                connection.execute("RELEASE one")
            return None, _too_slow(task) if is_interrupt(error) and boot() < task.deadline else error
        return value, None

    def _commit(self, connection: FileConnection, finished: list[Outcome]) -> list[Outcome]:
        """What each caller is to be told."""
        self._statement_deadline = float("inf")  # an interrupted COMMIT would leave the outcome open
        try:
            connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back(connection)
            self._recover(error)
            return [(task, None, translated(own) if own else lost_commit(error)) for task, _, own in finished]
        self._commits += 1
        self._is_clean = False
        if self._has_lost_log() and not self._save():
            lost = lost_commit(LogLost(self._path))
            return [(task, None, translated(own) if own else lost) for task, _, own in finished]
        return [(task, value, translated(own) if own else None) for task, value, own in finished]

    def _connected(self, deadline: float) -> FileConnection:
        self._drop_if_moved()
        if self._connection is None:
            file = file_at(self._path)
            connection = self._open(deadline)
            connection.set_progress_handler(lambda: boot() > self._statement_deadline, 50_000)
            self._connection = connection
            self._file = file or file_at(self._path)
            self._changes_seen = 0
        return self._connection

    def _changes(self) -> int:
        return 0 if self._connection is None else self._connection.total_changes - self._changes_seen

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        self._statement_deadline = float("inf")
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop_connection()

    def _recover(self, error: BaseException) -> None:
        if is_spoiling(error):
            self._drop_connection()

    def _drop_if_moved(self) -> None:
        if self._connection is not None and file_at(self._path) != self._file:
            emit("sqlite.file_moved", level=logging.WARNING, file=self._path)
            self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error as error:
                emit("sqlite.close_failed", level=logging.WARNING, error=error)

    def _has_lost_log(self) -> bool:
        return self._connection is not None and index_at(self._path) != self._connection.index

    def _save(self) -> bool:
        """What stands in a log that has lost its name goes into the file, as long as nobody has begun another:
        afterwards it would be put over what is newer."""
        if self._connection is None or index_at(self._path) is not None:
            return False
        try:
            return self._gate.take() and self._fold(self._connection, "PASSIVE")
        except (OSError, sqlite3.Error) as error:
            emit("sqlite.checkpoint_failed", level=logging.WARNING, error=error)
            return False
        finally:
            self._gate.release()

    def _checkpoint(self, mode: str) -> bool:
        """Move the WAL into the file, if no other process writes at this moment; True if all of it was moved."""
        self._drop_if_moved()
        if self._connection is None:
            return True
        if self._has_lost_log():
            self._save()
            return True
        try:
            return self._gate_for_checkpoint() and self._fold(self._connection, mode)
        except (OSError, sqlite3.Error) as error:
            emit("sqlite.checkpoint_failed", level=logging.WARNING, error=error)
            return False
        finally:
            self._gate.release()

    def _gate_for_checkpoint(self) -> bool:
        """At the first try, or, when the WAL has become long, with some insistence."""
        insist_until = boot() + (INSIST if self._commits >= 4 * CHECKPOINT_COMMITS else 0)
        while not self._gate.take():
            if boot() >= insist_until:
                return False
            pause(0.0005 * _chance.fraction())
        return True

    def _fold(self, connection: sqlite3.Connection, mode: str) -> bool:
        blocked, frames, moved = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        if mode == "PASSIVE" and frames > LONG_WAL:
            blocked, frames, moved = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        self._commits = 0
        self._changes_seen = connection.total_changes
        return not blocked and bool(frames == moved)
