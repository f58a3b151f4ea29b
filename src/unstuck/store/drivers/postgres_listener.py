"""The listener of a PostgreSQL: one connection that sleeps until somebody hints at work."""

from __future__ import annotations

import logging
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
from unstuck.telemetry import emit

CHANNEL = "unstuck"
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
            self._watch(connection, lambda: connection.driver.execute(_LISTENING))
            self._watch(connection, lambda: connection.driver.execute(f"LISTEN {CHANNEL}"))
        return self._connection

    def _say(self, connection: PooledConnection, statement: str, **values: Any) -> None:
        self._watch(
            connection, lambda: PostgresTransaction(connection.driver, self._statements).run(statement, **values)
        )

    def _watch(self, connection: PooledConnection, call: Callable[[], object]) -> None:
        self._watchdog.watch(connection.line, boot() + self._store_call)
        try:
            call()
        finally:
            self._watchdog.release(connection.line)
