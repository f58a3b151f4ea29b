"""One call to a PostgreSQL: a transaction on one connection, or a single statement, and what its errors mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import errors

from unstuck.clock import boot
from unstuck.model.errors import StoreUnavailable
from unstuck.store.database import Row, T
from unstuck.store.drivers import leaps, postgres_flight
from unstuck.store.drivers.leaps import Witness
from unstuck.store.drivers.postgres_pool import (
    PooledConnection,
    usual_stop_after,
)
from unstuck.store.drivers.postgres_session import PostgresSession
from unstuck.store.drivers.statements import Statements
from unstuck.store.hint import Hint

#: The schema is not the one that this code was written for.
ELSEWHERE = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.InvalidSchemaName)


class PostgresTransaction:
    """A connection between BEGIN and COMMIT, or in autocommit mode for reads."""

    __slots__ = ("_connection", "_session", "_statements", "_witness")

    one_table_per_statement = False

    def __init__(self, session: PostgresSession, statements: Statements, witness: Witness | None = None) -> None:
        self._session = session
        self._connection = session.driver
        self._statements = statements
        self._witness = witness

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        sent = 0.0 if self._witness is None else boot()
        rows = self._session.all(self._statements[statement], _with_arrays(values))
        if self._witness is not None:
            leaps.check(self._witness, rows, sent)
        return rows

    def tuples(self, statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return self._session.tuples(self._statements[statement], _with_arrays(values))

    def one(self, statement: str, /, **values: Any) -> Row | None:
        rows = self.all(statement, **values)
        if len(rows) > 1:
            raise LookupError(f"{statement} gave {len(rows)} rows where at most one was expected")
        return rows[0] if rows else None

    def run(self, statement: str, /, **values: Any) -> int:
        return self._session.run(self._statements[statement], _with_arrays(values))

    def script(self, sql: str) -> None:
        self._connection.execute(sql, prepare=False)

    def is_refusal(self, error: Exception) -> bool:
        return (
            isinstance(error, psycopg.DatabaseError)
            and error.sqlstate is not None
            and not isinstance(error, (psycopg.OperationalError, errors.ReadOnlySqlTransaction, *ELSEWHERE))
        )

    def apart(self, work: Callable[[], object]) -> Exception | None:
        self.script("SAVEPOINT apart")
        try:
            work()
        except psycopg.Error as error:
            if not self.is_refusal(error):
                raise
            self.script("ROLLBACK TO apart")
            return error
        return None


def _with_arrays(values: dict[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        if isinstance(value, list) and value:
            values[name] = postgres_flight.array(value)
    return values


class PostgresCall:
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
            answer = work(PostgresTransaction(self._connection.session, self._statements, self._witness))
        except BaseException:
            self._roll_back()
            raise
        self._commit()
        return answer

    def read(self, work: Callable[[Any], T], limit: float | None) -> T:
        """READ COMMITTED gives each statement its own snapshot, in a transaction or not: so none is opened."""
        if limit is not None:
            return self.write(work, limit)
        return work(PostgresTransaction(self._connection.session, self._statements, self._witness))

    def once(self, statement: str, values: dict[str, Any], hint: Hint | None) -> list[Row]:
        """In autocommit mode the statement commits as it ends: whether it did is unknown once it was sent. So it is
        noticed before if the server hung up while the connection rested."""
        self._connection.meet()
        self.commit_sent = True
        if hint is not None:
            return postgres_flight.write_and_hint(self._connection, self._statements, statement, values, hint)
        return PostgresTransaction(self._connection.session, self._statements).all(statement, **values)

    def backend(self) -> tuple[int, int]:
        """Which process of the server answers us: as it was announced when we connected, and as it says itself."""
        result = self._driver.pgconn.exec_(b"SELECT pg_backend_pid()")
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise errors.error_from_result(result)
        return self._driver.pgconn.backend_pid, int(result.get_value(0, 0) or 0)

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
