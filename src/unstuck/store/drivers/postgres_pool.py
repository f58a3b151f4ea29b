"""The connections to a PostgreSQL: dialled on threads of their own, kept while they live, dropped when in doubt."""

from __future__ import annotations

import math
import queue
import re
import select
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row

from unstuck.clock import boot
from unstuck.model.address import masked
from unstuck.model.errors import InvalidSettings, StoreBusy, StoreUnavailable
from unstuck.store.drivers.postgres_session import PostgresSession
from unstuck.store.drivers.watchdog import CallWatchdog, Line

if TYPE_CHECKING:
    from unstuck.store.drivers.postgres_flight import PreparedStatement

LOCK_SHARE = 0.4  # of a call's time may go into waiting for one lock: so that there is time to try again
#: The server gives up before we do. Then nothing was written for certain, the session lives, and who wrote a batch
#: knows that one of its items is slow; a line that we cut looks like a store that is away.
STATEMENT_SHARE = 0.8


def usual_stop_after(store_call: float) -> int:
    """In milliseconds."""
    return max(1, round(math.ceil(store_call * 1000) * STATEMENT_SHARE))


class PooledConnection:
    """A psycopg connection with its line to the watchdog."""

    __slots__ = ("driver", "hears", "is_used", "line", "owes_answer", "prepared", "session", "stop_after")

    def __init__(self, driver: psycopg.Connection[DictRow], prepare: int | None) -> None:
        self.driver = driver
        self.session = PostgresSession(driver, prepare)
        self.line = Line(driver.pgconn.socket)
        #: Answers when there is something to read.
        self.hears = select.poll()
        self.hears.register(driver.pgconn.socket, select.POLLIN)
        self.is_used = False
        #: After how many milliseconds the server stops a statement of this session; None: as it was introduced.
        self.stop_after: int | None = None
        #: A hint was sent behind the last statement, and nobody has read its answer yet. See `postgres_flight`.
        self.owes_answer = False
        #: The statements of flights that were prepared, by name.
        self.prepared: dict[str, PreparedStatement] = {}

    @property
    def is_lost(self) -> bool:
        return self.line.was_cut or self.driver.closed

    def meet(self) -> None:
        """Raises if the server has closed its end since the last answer."""
        while self.hears.poll(0):  # its last words may come before the end
            self.driver.pgconn.consume_input()

    @property
    def is_at_rest(self) -> bool:
        """No transaction of ours is open in it; one that hints is the server's own affair."""
        return self.owes_answer or self.driver.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def close(self) -> None:
        if self.driver.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self.line.cut()  # first: a polite goodbye to a frozen server could block
        self.driver.close()
        self.line.close()


class Dialler:
    """Makes connections, each on a thread of its own that may outlive the caller's patience."""

    def __init__(self, conninfo: str, store_call: float, prepare: int | None, watchdog: CallWatchdog) -> None:
        self._conninfo = conninfo
        self._store_call = store_call
        self._prepare = prepare
        self._watchdog = watchdog

    def dial(self, deadline: float, keep: Callable[[PooledConnection], None]) -> PooledConnection:
        """By the deadline, or StoreUnavailable; a connection that comes later goes to `keep`."""
        outcome: queue.SimpleQueue[PooledConnection | BaseException] = queue.SimpleQueue()
        handover = threading.Lock()
        gone: list[bool] = []

        def attempt() -> None:
            try:
                made: PooledConnection | BaseException = self._connect()
            except BaseException as error:
                made = error
            with handover:
                if gone and isinstance(made, PooledConnection):
                    keep(made)
                else:
                    outcome.put(made)

        threading.Thread(target=attempt, name="unstuck-dial", daemon=True).start()
        try:
            made = outcome.get(timeout=max(0.0, deadline - boot()))
        except queue.Empty:
            with handover:
                gone.append(True)
                if outcome.empty():
                    raise StoreUnavailable("PostgreSQL did not let us in in time; nothing was written") from None
                made = outcome.get()
        if isinstance(made, PooledConnection):
            return made
        raise _refused(made) from made

    def _connect(self) -> PooledConnection:
        driver = psycopg.connect(self._conninfo, autocommit=True, row_factory=dict_row, prepare_threshold=None)
        connection = PooledConnection(driver, self._prepare)
        self._watchdog.watch(connection.line, boot() + self._store_call)
        try:
            self._introduce(driver)
        except BaseException:
            connection.close()
            raise
        finally:
            self._watchdog.release(connection.line)
        return connection

    def _introduce(self, driver: psycopg.Connection[DictRow]) -> None:
        """Settings by SET and not by startup options, which poolers refuse; then: is this a writable primary?"""
        limit = math.ceil(self._store_call * 1000)
        statement, lock = usual_stop_after(self._store_call), max(1, round(limit * LOCK_SHARE))
        driver.execute(
            (
                f"SET statement_timeout = {statement}; SET lock_timeout = {lock};"
                f"SET idle_in_transaction_session_timeout = {limit}; SET synchronous_commit = on;"
                # Compiling a claim costs more than running it, and a long queue makes the planner want to.
                "SET jit = off;"
                "SET client_min_messages = warning; SET default_transaction_isolation = 'read committed';"
                # A backend that waits for a lock should notice that its client has left (PostgreSQL 14 or newer), and
                # one that sends, that nobody takes it: no other timeout ends that. It is 0 on a unix socket.
                "SELECT set_config(name, CASE name WHEN 'tcp_user_timeout' THEN '"
                f"{limit}' ELSE '1000' END, false)"
                # By their names: the view pg_settings makes all of them, and takes a millisecond for it.
                " FROM (VALUES ('client_connection_check_interval'), ('tcp_user_timeout')) AS setting (name)"
                " WHERE current_setting(name, true) IS NOT NULL"
            ),
            prepare=False,
        )
        row = driver.execute("SHOW transaction_read_only", prepare=False).fetchone()
        if row is not None and row["transaction_read_only"] == "on":
            raise StoreUnavailable("this PostgreSQL is read-only (a replica, or a primary that was demoted)")


class Pool:
    """Idle connections, the last used first, at most so many in all. Who wants his statements stopped early gets the
    one that does so already, if there is one: in a worker it is always the claims' own."""

    def __init__(self, dialler: Dialler, limit: int) -> None:
        self._dialler = dialler
        self._limit = limit
        self._idle: list[PooledConnection] = []
        self._open = 0
        self._lock = threading.RLock()  # taken by itself: a Condition's own way to it is Python
        self._changed = threading.Condition(self._lock)
        self._waiting = 0
        self._closed = False

    def take(self, deadline: float, stop_after: int | None = None) -> PooledConnection:
        with self._lock:
            while not self._idle and self._open >= self._limit:
                self._waiting += 1
                try:
                    is_changed = self._changed.wait(deadline - boot())
                finally:
                    self._waiting -= 1
                if not is_changed and boot() >= deadline:
                    raise StoreUnavailable(f"all {self._limit} connections are busy; nothing was written")
            if self._closed:
                raise StoreUnavailable("this store was closed")
            if self._idle:
                return self._idle.pop(self._place_of_fitting(stop_after))
            self._open += 1
        try:
            return self._dialler.dial(deadline, self.adopt)
        except BaseException:
            self._one_less()
            raise

    def _place_of_fitting(self, stop_after: int | None) -> int:
        last = len(self._idle) - 1
        if self._idle[last].stop_after == stop_after:
            return last
        return next((n for n in range(last, -1, -1) if self._idle[n].stop_after == stop_after), last)

    def give_back(self, connection: PooledConnection) -> None:
        connection.is_used = True
        if connection.is_lost or not connection.is_at_rest:
            self.drop(connection)
            return
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                if self._waiting:
                    self._changed.notify()
                return
        self.drop(connection)

    def adopt(self, connection: PooledConnection) -> None:
        """One that came too late for the call that asked for it."""
        with self._lock:
            if not self._closed and self._open < self._limit:
                self._open += 1
                self._idle.append(connection)
                self._changed.notify()
                return
        connection.close()

    def drop(self, connection: PooledConnection) -> None:
        connection.close()
        self._one_less()

    def drop_idle(self) -> None:
        """One of them was dead, so the server was probably restarted: the others are dead too."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self.drop(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        self.drop_idle()

    def _one_less(self) -> None:
        with self._lock:
            self._open -= 1
            self._changed.notify()


def conninfo_of(url: str, store_call: float, application: str) -> str:
    """What the URL leaves open: names for the server's own views, and signs of life on the wire."""
    given = _read(url)
    ours: dict[str, Any] = {
        "application_name": application,
        "connect_timeout": max(2, math.ceil(store_call)),
        "keepalives": 1,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": math.ceil(store_call * 1000),
    }
    return make_conninfo("", **{**ours, **given})


def _read(url: str) -> dict[str, Any]:
    """What the URL says; a wrong one is refused for good, or it would look like a server that is away at each try."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InvalidSettings([f"database={masked(url)!r}: {_told(error, url)}; {_ESCAPES}"]) from None
    ports, hosts = (str(given.get(name) or "").split(",") for name in ("port", "host"))
    if not all(port == "" or (port.isdecimal() and 0 < int(port) < 1 << 16) for port in ports):
        raise InvalidSettings([f"database={masked(url)!r}: its port is not a number from 1 to 65535; {_ESCAPES}"])
    if any("@" in host[1:] for host in hosts):  # one that begins with it is an abstract socket
        raise InvalidSettings([f"database={masked(url)!r}: its host has an @ in it; {_ESCAPES}"])
    return given


def _told(error: BaseException, url: str) -> str:
    """libpq quotes what it cannot read, be it the password: only what may be shown of the URL stays."""
    visible = f"]={masked(url)}"  # these signs it quotes as missing
    return re.sub(r'"([^"]*)"', lambda quoted: quoted[0] if quoted[1] in visible else '"***"', one_line(error))


_ESCAPES = (
    "write postgresql://USER:PASSWORD@HOST:PORT/NAME?OPTION=VALUE, and inside of a part "
    "%25 for %, %2F for /, %3A for :, %3F for ?, %40 for @"
)


def _refused(error: BaseException) -> BaseException:
    if isinstance(error, errors.TooManyConnections):
        return StoreBusy(f"PostgreSQL takes no more connections: {error}")
    if isinstance(error, psycopg.Error):
        return StoreUnavailable(f"PostgreSQL cannot be reached: {one_line(error)}")
    return error


def one_line(error: BaseException) -> str:
    """Without the line of our statement that PostgreSQL quotes: callers over HTTP are told it."""
    return " ".join(str(error).partition("\nLINE ")[0].split())
