"""PostgresDatabase: psycopg 3, a small pool, and a deadline that holds even when the server is frozen.

Theory of operation. Connections are in autocommit mode; a write sends BEGIN and COMMIT itself, so the driver always
knows whether COMMIT may have left: a connection lost before that means *nothing was written*, one lost after it means
*unknown*. A watchdog cuts the socket of a call that passes its deadline. Connecting happens on a thread of its own,
because name resolution and TLS cannot be interrupted: the caller leaves on time, and a connection that comes late
goes to the pool. Connections of before a fork belong to the parent and are neither used nor closed in the child.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, cast

import psycopg
from psycopg import errors
from psycopg.rows import DictRow

from unstuck.chance import SystemChance
from unstuck.clock import boot
from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreBusy, StoreError, StoreUnavailable
from unstuck.store.database import Row, StoreSlow, T, Transaction
from unstuck.store.drivers import leaps, migrations
from unstuck.store.drivers.leaps import Leapt, Witness
from unstuck.store.drivers.migrations import Migration, Repeatable, SchemaTransaction
from unstuck.store.drivers.postgres_pool import (
    LOCK_SHARE,
    Dialler,
    Pool,
    PooledConnection,
    conninfo_of,
    one_line,
    usual_stop_after,
)
from unstuck.store.drivers.statements import Statements
from unstuck.store.drivers.watchdog import CallWatchdog
from unstuck.telemetry import emit

CHANNEL = "unstuck"
MIGRATE_WITHIN = 60.0
DEAF = 5.0  # how long not to try again after listening was refused
#: Of a call's time one statement may take where patience is asked for: what is slower is the fault of one of many.
SLOW_SHARE = 1 / 3
TRIES = 3  # of a transaction that lost a deadlock, a serialization or a lock
CONTENTION = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
FULL = (errors.DiskFull, errors.ReadOnlySqlTransaction, errors.TooManyConnections, errors.OutOfMemory)
ELSEWHERE = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.InvalidSchemaName)

_chance = SystemChance()
_never = threading.Event()


class _Transaction:
    """A connection between BEGIN and COMMIT, or in autocommit mode for reads."""

    __slots__ = ("_connection", "_statements", "_witness")

    split = False

    def __init__(
        self, connection: psycopg.Connection[DictRow], statements: Statements, witness: Witness | None = None
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._witness = witness

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        sent = 0.0 if self._witness is None else boot()
        rows = cast(list[Row], self._execute(statement, values).fetchall())
        if self._witness is not None:
            leaps.check(self._witness, rows, sent)
        return rows

    def one(self, statement: str, /, **values: Any) -> Row | None:
        rows = self.all(statement, **values)
        if len(rows) > 1:
            raise LookupError(f"{statement} gave {len(rows)} rows where at most one was expected")
        return rows[0] if rows else None

    def run(self, statement: str, /, **values: Any) -> int:
        return max(0, self._execute(statement, values).rowcount)

    def script(self, sql: str) -> None:
        self._connection.execute(sql, prepare=False)

    def _execute(self, statement: str, values: dict[str, Any]) -> psycopg.Cursor[DictRow]:
        for name, value in values.items():
            if isinstance(value, list) and value and isinstance(value[0], int):
                values[name] = f"{{{','.join(map(str, value))}}}"  # the driver's own way takes 12 µs for each number
        # Always with parameters, even none: only then does the driver read %% as the percent sign it stands for.
        return self._connection.execute(self._statements[statement], values)


class _Call:
    """One transaction on one connection, and how far it got."""

    def __init__(
        self,
        connection: PooledConnection,
        statements: Statements,
        store_call: float,
        deadline: float,
        witness: Witness | None,
    ) -> None:
        self._connection = connection
        self._driver = connection.driver
        self._statements = statements
        self._store_call = store_call
        self._deadline = deadline
        self._witness = witness
        self.commit_sent = False

    def write(self, work: Callable[[Any], T], limit: float | None, begin: bytes = b"BEGIN") -> T:
        self._command(begin)
        try:
            if limit is not None:
                self._allow(limit)
            answer = work(_Transaction(self._driver, self._statements, self._witness))
        except BaseException:
            self._roll_back()
            raise
        self._commit()
        return answer

    def read(self, work: Callable[[Any], T], limit: float | None) -> T:
        """READ COMMITTED gives each statement its own snapshot, in a transaction or not: so none is opened."""
        if limit is not None:
            return self.write(work, limit)
        return work(_Transaction(self._driver, self._statements, self._witness))

    def once(self, statement: str, values: dict[str, Any]) -> list[Row]:
        """In autocommit mode the statement commits as it ends: whether it did is unknown once it was sent."""
        self.commit_sent = True
        return _Transaction(self._driver, self._statements).all(statement, **values)

    def stop_after(self, milliseconds: int | None) -> None:
        """For the session: a round trip by itself, unless it is so already. The pool sees to that."""
        if self._connection.stop_after != milliseconds:
            usual = usual_stop_after(self._store_call)
            self._command(b"SET statement_timeout = %d" % (usual if milliseconds is None else milliseconds))
            self._connection.stop_after = milliseconds

    def _commit(self) -> None:
        if boot() >= self._deadline:
            self._roll_back()
            raise StoreUnavailable("the transaction took longer than its deadline; nothing was written")
        self.commit_sent = True
        if self._command(b"COMMIT") != b"COMMIT":  # it answers ROLLBACK, without an error, if a statement had failed
            self.commit_sent = False
            raise StoreUnavailable("the transaction had failed before its commit; nothing was written")

    def _command(self, text: bytes) -> bytes | None:
        """Straight through libpq: a tenth of the price of a cursor, twice per write."""
        result = self._driver.pgconn.exec_(text)
        if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(result)
        return result.command_status

    def _roll_back(self) -> None:
        try:
            if not self._connection.is_lost:
                self._driver.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            pass  # then the pool drops it, and the server rolls back by itself

    def _allow(self, limit: float) -> None:
        """More time than usual on the server's side too, for this transaction."""
        milliseconds = str(math.ceil(limit * 1000))
        for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            self._driver.execute("SELECT set_config(%s, %s, true)", (setting, milliseconds))


class _Listener:
    """The connection that hears hints; its idle row tells others that a notification is worth its price."""

    def __init__(self, dialler: Dialler, watchdog: CallWatchdog, statements: Statements, store_call: float) -> None:
        self._dialler = dialler
        self._watchdog = watchdog
        self._statements = statements
        self._store_call = store_call
        self._name = _chance.nonce()
        self._connection: PooledConnection | None = None
        self._deaf_until = 0.0
        self._marked_until = 0.0
        self._late: list[PooledConnection] = []
        self._has_left = False

    def wait(self, timeout: float) -> bool:
        """Until a hint or the timeout. Without a connection, or behind a pooler, it just sleeps."""
        until = boot() + timeout
        while True:
            if boot() >= self._deaf_until:
                was_connected = self._connection is not None
                try:
                    return self._hear(until)
                except (StoreError, psycopg.Error, OSError) as error:
                    self.close()
                    if was_connected:
                        continue  # it had died while nobody listened: the next one is new
                    self._deafen(error, timeout)
            if boot() >= until:
                return False
            _never.wait(max(0.0, min(until, self._deaf_until) - boot()))

    def _deafen(self, error: BaseException, timeout: float) -> None:
        """For a while; a short wait may just have been too short to connect, and what comes late is kept."""
        emit("store.cannot_listen", level=logging.WARNING, error=error)
        self._deaf_until = boot() + min(DEAF, timeout)

    def close(self) -> None:
        """Late ones stay for the next try; those of a lost server then fail, one after the other."""
        connection, self._connection = self._connection, None
        self._marked_until = 0.0
        if connection is not None:
            connection.close()

    def leave(self) -> None:
        """For good: nobody needs to notify us any more."""
        if self._connection is not None and self._marked_until:
            try:
                self._say(self._connection, "forget_idle", listener=self._name)
            except (psycopg.Error, OSError):
                pass  # then the mark ends by itself, and a sweep takes it away
        self.close()
        self._has_left = True
        self._drop_late()

    def _keep(self, late: PooledConnection) -> None:
        """One that came after its deadline; after our leave it has nobody who would close it but us."""
        self._late.append(late)
        if self._has_left:
            self._drop_late()

    def _drop_late(self) -> None:
        while self._late:
            self._late.pop().close()

    def _hear(self, until: float) -> bool:
        """Work that came before the mark was notified to nobody: hence *look once more* when the mark is new.

        From then on the mark stays through quiet waits, so that nothing slips between them, and goes with the first
        hint: a busy worker should cost nobody a notification.
        """
        connection = self._connected(min(until, boot() + self._store_call))
        was_marked = boot() < self._marked_until
        self._mark(connection, until - boot() + self._store_call)
        if not was_marked:
            return True
        driver = connection.driver
        heard = any(True for _ in driver.notifies(timeout=max(0.0, until - boot()), stop_after=1))
        if heard:
            self._say(connection, "forget_idle", listener=self._name)
            self._marked_until = 0.0
            for _ in driver.notifies(timeout=0):
                pass  # several hints are one
        return heard

    def _mark(self, connection: PooledConnection, seconds: float) -> None:
        self._say(connection, "mark_idle", listener=self._name, microseconds=round(seconds * 1_000_000))
        self._marked_until = boot() + seconds

    def _connected(self, deadline: float) -> PooledConnection:
        if self._connection is None:
            connection = self._late.pop() if self._late else self._dialler.dial(deadline, self._keep)
            self._connection = connection
            self._watch(connection, lambda: connection.driver.execute("SET synchronous_commit = off"))
            self._watch(connection, lambda: connection.driver.execute(f"LISTEN {CHANNEL}"))
        return self._connection

    def _say(self, connection: PooledConnection, statement: str, **values: Any) -> None:
        self._watch(connection, lambda: _Transaction(connection.driver, self._statements).run(statement, **values))

    def _watch(self, connection: PooledConnection, call: Callable[[], object]) -> None:
        self._watchdog.watch(connection.line, boot() + self._store_call)
        try:
            call()
        finally:
            self._watchdog.release(connection.line)


class PostgresDatabase:
    """The Database of one PostgreSQL server, plain or behind a pooler."""

    dialect = "postgres"
    is_file = False

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
        self._listener = _Listener(dialler, self._watchdog, self._statements, self.store_call)
        self._waiting = threading.Lock()

    def write(
        self,
        work: Callable[[Transaction], T],
        within: float | None = None,
        *,
        patience: float | None = None,
        stop_after: float | None = None,
    ) -> T:
        slow = self.store_call * SLOW_SHARE if stop_after is None and patience is not None else stop_after
        begin = _begin(patience, slow)
        return self._call(lambda call, limit: call.write(work, limit, begin), within, is_patient=patience is None)

    def read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        return self._call(lambda call, limit: call.read(work, limit), within)

    def once(self, statement: str, /, *, stop_after: float | None = None, **values: Any) -> list[Row]:
        """What it did stands, whatever its answer says about the clock; the next one is to know."""
        if stop_after is not None and self._prepare is None:
            # Behind a pooler a session's settings would soon be somebody else's; a transaction's end with it.
            return self.write(lambda t: t.all(statement, **values), stop_after=stop_after)
        sent = boot()
        stop = None if stop_after is None else _milliseconds(stop_after)
        rows = self._call(lambda call, _: call.once(statement, values), None, stop_after=stop)
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
        self.witness.leaps = stand["leaps"] if stand is not None else None
        if left is not None:
            self.witness.inherit(left["beat_at"], left["boot_at"])
        self.read(lambda t: t.one("now"))  # what has leapt is known before a lease is taken by it

    def expected_now(self) -> tuple[int, int]:
        expected = self.witness.expected() if self.witness is not None else None
        if expected is None:
            return leaps.EVER
        # It may take its time until it is executed, but no longer than we would wait for its answer.
        return expected[0], expected[1] + round(self.store_call * 1_000_000)

    def check_clock(self) -> bool:
        return self.witness is not None and leaps.mend(self, self.witness)

    def hint(self) -> None:
        """What it belongs to is committed: nothing that goes wrong here, even a lack of threads, is its failure."""
        try:
            self.read(lambda tx: tx.all("notify_idle"))
        except (StoreError, psycopg.Error, OSError, RuntimeError) as error:
            emit("store.hint_failed", level=logging.DEBUG, error=error)

    def wait(self, timeout: float) -> bool:
        if not self._waiting.acquire(blocking=False):
            return _never.wait(timeout)  # one waiter per process hears hints; others go by their timeout
        try:
            return self._listener.wait(timeout)
        finally:
            self._waiting.release()

    def migrate(self) -> list[str]:
        def work(tx: SchemaTransaction) -> list[str]:
            tx.all("migration_lock")
            return migrations.apply(tx, *self._schema())

        return self._call(lambda call, limit: call.write(work, limit), MIGRATE_WITHIN)

    def schema_version(self) -> int:
        return self.read(migrations.version)

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
        act: Callable[[_Call, float | None], T],
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
            call = _Call(connection, self._statements, self.store_call, deadline, self.witness)
            was_used = connection.is_used
            self._watchdog.watch(connection.line, deadline)
            try:
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
