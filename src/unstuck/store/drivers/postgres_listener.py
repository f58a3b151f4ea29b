"""The listener of a PostgreSQL: one connection that sleeps until somebody hints at work."""

from __future__ import annotations

import logging
import select
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from unstuck.chance import SystemChance
from unstuck.clock import boot
from unstuck.model.errors import StoreError
from unstuck.store.drivers.postgres_call import PostgresTransaction
from unstuck.store.drivers.postgres_pool import (
    Dialler,
    PooledConnection,
)
from unstuck.store.drivers.statements import Statements
from unstuck.store.drivers.watchdog import CallWatchdog
from unstuck.store.hint import ANYWHERE, Hint
from unstuck.telemetry import emit

CHANNEL = "unstuck"
#: How long a mark stands. Who still waits renews it in time; who was killed costs others notifications for so long.
MARKED_FOR = 30.0
DEAF = 5.0  # how long not to try again after listening was refused
#: A mark is a hint: nobody needs it to be durable, and who waits for work does not wait for somebody who holds it.
_LISTENING = "SET synchronous_commit = off; SET lock_timeout = 50"

_chance = SystemChance()
_never = threading.Event()


class Listener:
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
        #: Notifications that came with the answer to a statement.
        self._late: list[PooledConnection] = []
        self._has_left = False

    def wait(self, timeout: float) -> Hint | None:
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
                return None
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

    def forget(self) -> None:
        """Nobody needs to notify us for now."""
        if self._connection is not None and self._marked_until:
            self._marked_until = 0.0
            try:
                self._say(self._connection, "forget_idle", listener=self._name)
            except (psycopg.Error, OSError):
                self.close()  # then the mark ends by itself, and a sweep takes it away

    def leave(self) -> None:
        """For good."""
        self.forget()
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

    def _hear(self, until: float) -> Hint | None:
        """Work that came before the mark was notified to nobody: hence *look once more* when the mark is new.

        From then on the mark stays, through quiet waits and through hints: what comes between two waits is in our
        socket when the next one begins. A worker that has become busy takes it away (`forget`), so that nobody pays
        for notifications.
        """
        connection = self._connected(min(until, boot() + self._store_call))
        left = self._marked_until - boot()
        needed = until - boot() + self._store_call
        if left < needed:
            self._mark(connection, max(MARKED_FOR, needed))
            if left <= 0:
                return ANYWHERE
        return self._listen(connection.driver, until)

    def _listen(self, driver: psycopg.Connection[Any], until: float) -> Hint | None:
        """Without psycopg's own wait, which wakes up every tenth of a second. Several hints are one."""
        poller = select.poll()
        poller.register(driver.pgconn.socket, select.POLLIN)
        while (hint := self._take_hints(driver)) is None:
            if not poller.poll(max(0.0, until - boot()) * 1000):
                return None
        return hint

    def _take_hints(self, driver: psycopg.Connection[Any]) -> Hint | None:
        driver.pgconn.consume_input()
        words: set[bytes] = set()
        while (notification := driver.pgconn.notifies()) is not None:
            words.add(notification.extra)
        return Hint.heard(words)

    def _mark(self, connection: PooledConnection, seconds: float) -> None:
        marked_at = boot()
        self._say(connection, "mark_idle", listener=self._name, microseconds=round(seconds * 1_000_000))
        self._marked_until = marked_at + seconds

    def _connected(self, deadline: float) -> PooledConnection:
        if self._connection is None:
            connection = self._late.pop() if self._late else self._dialler.dial(deadline, self._keep)
            self._connection = connection
            self._watch(connection, lambda: connection.driver.execute(_LISTENING))
            self._watch(connection, lambda: connection.driver.execute(f"LISTEN {CHANNEL}"))
        return self._connection

    def _say(self, connection: PooledConnection, statement: str, **values: Any) -> None:
        self._watch(
            connection, lambda: PostgresTransaction(connection.session, self._statements).run(statement, **values)
        )

    def _watch(self, connection: PooledConnection, call: Callable[[], object]) -> None:
        self._watchdog.watch(connection.line, boot() + self._store_call)
        try:
            call()
        finally:
            self._watchdog.release(connection.line)
