"""PostgresDatabase: psycopg 3, a small pool, and a deadline that holds even when the server is frozen.

Theory of operation. Connections are in autocommit mode; a write sends BEGIN and COMMIT itself, so the driver always
knows whether COMMIT may have left: a connection lost before that means *nothing was written*, one lost after it means
*unknown*. A watchdog cuts the socket of a call that passes its deadline. Connecting happens on a thread of its own,
because name resolution and TLS cannot be interrupted: the caller leaves on time, and a connection that comes late
goes to the pool. Connections of before a fork belong to the parent and are neither used nor closed in the child.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import errors

from unstuck.chance import SystemChance
from unstuck.clock import boot
from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreBusy, StoreError, StoreUnavailable
from unstuck.store.database import SLOW_SHARE, Row, ServerReach, StoreSlow, T, Transaction
from unstuck.store.drivers import leaps, migrations, postgres_flight
from unstuck.store.drivers.leaps import Leapt, Witness
from unstuck.store.drivers.migrations import Migration, Repeatable, SchemaTransaction
from unstuck.store.drivers.postgres_call import ELSEWHERE, PostgresCall
from unstuck.store.drivers.postgres_listener import Listener
from unstuck.store.drivers.postgres_pool import (
    LOCK_SHARE,
    Dialler,
    Pool,
    PooledConnection,
    conninfo_of,
    one_line,
)
from unstuck.store.drivers.statements import Statements
from unstuck.store.drivers.watchdog import CallWatchdog
from unstuck.store.hint import ANYWHERE, Hint
from unstuck.store.untold import Untold, carefully
from unstuck.telemetry import emit

MIGRATE_WITHIN = 60.0
TRIES = 3  # of a transaction that lost a deadlock, a serialization or a lock
CONTENTION = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
FULL = (errors.DiskFull, errors.ReadOnlySqlTransaction, errors.TooManyConnections, errors.OutOfMemory)

_chance = SystemChance()
_never = threading.Event()


class PostgresDatabase:
    """The Database of one PostgreSQL server, plain or behind a pooler."""

    dialect = "postgres"
    is_file = False
    one_table_per_statement = False

    def __init__(
        self,
        url: str,
        *,
        store_call: float = 3.0,
        application: str = "unstuck",
        max_connections: int = 8,
        prepare: int | None = 5,
        statements: Statements | None = None,
        witness: Witness | None = None,
    ) -> None:
        self.store_call = store_call
        self.witness = witness
        self._conninfo = conninfo_of(url, store_call, application)
        self._prepare = prepare
        self._max_connections = max_connections
        self._statements = statements or Statements(self.dialect)
        self._start()
        _databases.add(self)

    def _start(self) -> None:
        self._watchdog = CallWatchdog()
        dialler = Dialler(self._conninfo, self.store_call, self._prepare, self._watchdog)
        self._pool = Pool(dialler, self._max_connections)
        self._listener = Listener(dialler, self._watchdog, self._statements, self.store_call)
        self._waiting = threading.Lock()

    def write(
        self,
        work: Callable[[Transaction], T],
        within: float | None = None,
        *,
        patience: float | None = None,
        stop_after: float | None = None,
    ) -> T:
        try:
            return self._write(work, within, patience, stop_after)
        except Untold:
            return self._write(carefully(work), within, patience, stop_after)

    def _write(
        self, work: Callable[[Transaction], T], within: float | None, patience: float | None, stop_after: float | None
    ) -> T:
        slow = self.store_call * SLOW_SHARE if stop_after is None and patience is not None else stop_after
        begin = _begin(patience, slow)
        return self._call(lambda call, limit: call.write(work, limit, begin), within, is_patient=patience is None)

    def read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        return self._call(lambda call, limit: call.read(work, limit), within)

    def once(
        self, statement: str, /, *, stop_after: float | None = None, hint: Hint | None = None, **values: Any
    ) -> list[Row]:
        """What it did stands, whatever its answer says about the clock; the next one is to know."""
        if hint is not None and self._prepare is None:
            rows = self.once(statement, stop_after=stop_after, **values)
            self.hint(hint)
            return rows
        if stop_after is not None and self._prepare is None:
            # Behind a pooler a session's settings would soon be somebody else's; a transaction's end with it.
            return self.write(lambda t: t.all(statement, **values), stop_after=stop_after)
        sent = boot()
        stop = None if stop_after is None else _milliseconds(stop_after)
        rows = self._call(lambda call, _: call.once(statement, values, hint), None, stop_after=stop)
        try:
            if self.witness is not None:
                leaps.check(self.witness, rows, sent)
        except Leapt:
            self.check_clock()
        return rows

    def remember(self, worker: str, boot_id: str) -> None:
        if self.witness is None:
            return
        self.witness.name, self.witness.boot_id = worker, boot_id
        left, stand = self.read(lambda t: (t.one("last_reading", boot_id=boot_id), t.one("clock_stand")))
        if stand is not None:
            self.witness.leaps, self.witness.ahead = stand["leaps"], stand["ahead"]
        if left is not None:
            self.witness.inherit(left["beat_at"], left["boot_at"])
        self.read(lambda t: t.one("now"))  # what has leapt is known before a lease is taken by it

    def expected_now(self) -> tuple[int, int]:
        expected = self.witness.expected() if self.witness is not None else None
        if expected is None:
            return leaps.EVER
        # It may take its time until it is executed, but no longer than we would wait for its answer.
        return expected[0], expected[1] + round(self.store_call * 1_000_000)

    def likely_now(self) -> int | None:
        expected = self.witness.expected() if self.witness is not None else None
        return None if expected is None else sum(expected) // 2

    def check_clock(self) -> bool:
        return self.witness is not None and leaps.mend(self, self.witness)

    def before_rescue(self) -> None: ...

    def before_timers(self) -> None: ...

    def hint(self, hint: Hint = ANYWHERE) -> None:
        """What it belongs to is committed: nothing that goes wrong here, even a lack of threads, is its failure."""
        try:
            self.read(lambda tx: tx.all("notify_idle", word=hint.word))
        except (StoreError, psycopg.Error, OSError, RuntimeError) as error:
            emit("store.hint_failed", level=logging.DEBUG, error=error)

    def wait(self, timeout: float) -> Hint | None:
        if not self._waiting.acquire(blocking=False):
            _never.wait(timeout)  # one waiter per process hears hints; others go by their timeout
            return None
        try:
            return self._listener.wait(timeout)
        finally:
            self._waiting.release()

    def stay_awake(self) -> None:
        if self._waiting.acquire(blocking=False):  # else somebody waits
            try:
                self._listener.forget()
            finally:
                self._waiting.release()

    def migrate(self) -> list[str]:
        def work(tx: SchemaTransaction) -> list[str]:
            tx.all("migration_lock")
            return migrations.apply(tx, *self._schema())

        return self._call(lambda call, limit: call.write(work, limit), MIGRATE_WITHIN)

    def schema_version(self) -> int:
        shipped = migrations.shipped(self.dialect)
        return self.read(lambda t: migrations.version(t, shipped))

    def shipped_version(self) -> int:
        return max((migration.number for migration in migrations.shipped(self.dialect)), default=0)

    def has_current_schema(self) -> bool:
        shipped, computed = self._schema()
        return self.read(lambda t: migrations.is_current(t, shipped, computed))

    def _schema(self) -> tuple[list[Migration], list[Repeatable]]:
        return migrations.shipped(self.dialect), migrations.repeatables(self.dialect)

    def migration_sql(self) -> str:
        return migrations.script(
            *self._schema(),
            [self._statements["migration_table"], self._statements["repeatable_table"]],
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        )

    def reach(self) -> ServerReach:
        """A pooler announces a number of its own to each client. One that lends its sessions for a transaction serves
        two clients, of which neither is inside one, by the same session."""

        def look(call: PostgresCall, _: float | None) -> tuple[tuple[int, int], tuple[int, int]]:
            first = call.backend()
            return first, self._call(lambda other, _: other.backend(), None)

        (announced, ours), (_, other) = self._call(look, None)
        pooler = "none" if announced == ours else "transaction" if ours == other else "session"
        return ServerReach(self._max_connections, self._prepare is not None, pooler)  # type: ignore[arg-type]

    def fold_log(self, within: float) -> bool:
        return True  # it is the server's own affair

    def close(self) -> None:
        self._pool.close()
        if self._waiting.acquire(timeout=self.store_call):
            self._listener.leave()
            self._waiting.release()
        self._watchdog.close()
        _databases.discard(self)

    def after_fork_in_child(self) -> None:
        """Connections, locks and threads of the parent stay untouched for ever; new ones are made."""
        _inherited.extend((self._pool, self._listener, self._watchdog))
        self._start()

    def _call(
        self,
        act: Callable[[PostgresCall, float | None], T],
        within: float | None,
        is_patient: bool = True,
        stop_after: int | None = None,
    ) -> T:
        """One transaction by its deadline; tried again where nothing was written and the cause may have passed."""
        deadline = boot() + (self.store_call if within is None else within)
        limit = within if within is not None and within > self.store_call else None
        tries = leapt = 0
        while True:
            if leapt:
                self.check_clock()
            connection = self._pool.take(deadline, stop_after)
            call = PostgresCall(connection, self._statements, self.store_call, deadline, self.witness)
            was_used = connection.is_used
            self._watchdog.watch(connection.line, deadline)
            try:
                postgres_flight.land(connection)
                call.stop_after(stop_after)
                return act(call, limit)
            except CONTENTION as error:
                tries += 1
                again = self.store_call * LOCK_SHARE if isinstance(error, errors.LockNotAvailable) else 0.05
                has_waited = isinstance(error, errors.LockNotAvailable) and not is_patient
                if has_waited or tries >= TRIES or boot() + again >= deadline:
                    raise StoreBusy(f"PostgreSQL is contended: {one_line(error)}; nothing was written") from error
                pause = 0.05 * _chance.fraction()
            except Leapt as error:
                leapt += 1
                if leapt > TRIES or boot() >= deadline:
                    raise StoreBusy("PostgreSQL's clock leaps to and fro; nothing was written") from error
                pause = 0.0
            except psycopg.Error as error:
                if _says_hung_up(error):
                    connection.driver.close()
                if not (connection.is_lost and was_used and not call.commit_sent and boot() < deadline):
                    raise _in_our_words(error, connection, call.commit_sent) from error
                pause = 0.0  # it had died in the pool: the next one is new
            finally:
                self._watchdog.release(connection.line)
                self._pool.give_back(connection)
                if connection.is_lost:
                    self._pool.drop_idle()
            if pause:
                _never.wait(min(pause, max(0.0, deadline - boot())))


def _begin(patience: float | None, stop_after: float | None) -> bytes:
    """What it sets comes in one round trip with the BEGIN, and ends with the transaction."""
    settings = {b"lock_timeout": patience, b"statement_timeout": stop_after}
    given = [b"; SET LOCAL %s = %d" % (name, _milliseconds(s)) for name, s in settings.items() if s is not None]
    return b"BEGIN" + b"".join(given)


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _says_hung_up(error: psycopg.Error) -> bool:
    """What has no code does not come from the server. libpq says so when it cannot send, after a crash for example,
    and then still believes that the connection lives."""
    return error.sqlstate is None and type(error) in (psycopg.DatabaseError, psycopg.OperationalError)


def _in_our_words(error: psycopg.Error, connection: PooledConnection, commit_sent: bool) -> BaseException:
    """What happened to the caller's write. What is not the store's fault stays as it is."""
    if connection.is_lost:
        why = "it did not answer in time" if connection.line.was_cut else one_line(error)
        if commit_sent:
            return OutcomeUnknown(f"PostgreSQL was lost during the commit ({why}): it may have been written")
        return StoreUnavailable(f"PostgreSQL was lost: {why}; nothing was written")
    if isinstance(error, FULL):
        return StoreBusy(f"PostgreSQL cannot write: {one_line(error)}; nothing was written")
    if isinstance(error, errors.QueryCanceled):
        return StoreSlow(f"PostgreSQL stopped the statement: {one_line(error)}; nothing was written")
    if isinstance(error, ELSEWHERE):
        return SchemaMismatch(
            f"the database's schema does not fit this version ({one_line(error)}); run: unstuck db migrate"
        )
    return error


_databases: weakref.WeakSet[PostgresDatabase] = weakref.WeakSet()
_inherited: list[object] = []


def _after_fork_in_child() -> None:
    for database in list(_databases):
        database.after_fork_in_child()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)
