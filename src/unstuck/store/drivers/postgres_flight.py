"""Two transactions in one flight: a statement that writes, and behind its commit the hint to idle workers.

Both leave together, each with a Sync of its own. So the server commits the first before it begins the second, and the
hint looks for idle marks with a snapshot that is younger than that commit: see decisions/0019. The caller waits for
the first alone; the answer to the hint is read before the connection is used again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult

from unstuck.store.database import Row
from unstuck.store.drivers.postgres_pool import PooledConnection
from unstuck.store.drivers.postgres_session import flush, numbered
from unstuck.store.drivers.statements import Statements
from unstuck.store.hint import Hint
from unstuck.telemetry import emit

HINT = "notify_idle"
#: What such a statement may answer with, by the numbers of its types: truth, whole numbers and text.
_READERS: dict[int, Any] = {16: lambda value: value == b"t", 20: int, 21: int, 23: int}


def write_and_hint(
    connection: PooledConnection, statements: Statements, statement: str, values: dict[str, Any], hint: Hint
) -> list[Row]:
    """What the first answered, once it is committed."""
    try:
        return _fly(connection, statements, statement, values, hint)
    except errors.InvalidSqlStatementName:
        # The session forgot it, or a lock on a table kept it from learning it; nothing was written. `land` sees to
        # the hint, and what else the session knows it would refuse to learn twice.
        del connection.prepared[statement]
        return _fly(connection, statements, statement, values, hint)


def land(connection: PooledConnection) -> None:
    """Read what the last flight still owes. A hint that failed is nobody's failure."""
    if not connection.owes_answer:
        return
    _, result = _answer(connection)
    connection.owes_answer = False
    connection.driver.pgconn.exit_pipeline_mode()
    if result is not None:
        error = errors.error_from_result(result)
        if isinstance(error, errors.InvalidSqlStatementName):
            connection.prepared.pop(HINT, None)
        emit("store.hint_failed", level=logging.DEBUG, error=error)


def array(values: list[Any]) -> str:
    """An array as PostgreSQL reads it; the driver's own way takes 12 µs for each value. No stored text has a NUL
    in it, so that one can stand between them meanwhile."""
    if None in values:
        return f"{{{','.join('NULL' if value is None else array([value])[1:-1] for value in values)}}}"
    if not values or not isinstance(values[0], str):
        return f"{{{','.join(map(str, values))}}}"
    escaped = "\x00".join(values).replace("\\", "\\\\").replace('"', '\\"').replace("\x00", '","')
    return f'{{"{escaped}"}}'


def _fly(
    connection: PooledConnection, statements: Statements, statement: str, values: dict[str, Any], hint: Hint
) -> list[Row]:
    line = connection.driver.pgconn
    line.enter_pipeline_mode()
    sent = _send(connection, statements, statement, values)
    _send(connection, statements, HINT, {"word": hint.word})
    flush(line)
    result, error = _answer(connection)
    connection.owes_answer = True
    if error is not None:
        land(connection)
        raise errors.error_from_result(error)
    return sent.rows(result)


def _send(
    connection: PooledConnection, statements: Statements, name: str, values: dict[str, Any]
) -> PreparedStatement:
    """A transaction by itself. What the session does not know yet is prepared on the way."""
    line = connection.driver.pgconn
    prepared = connection.prepared.get(name)
    if prepared is None:
        prepared = connection.prepared[name] = PreparedStatement(name, statements[name])
        line.send_prepare(prepared.name, prepared.text)
    written = [_WRITERS.get(type(value), _written)(value) for value in map(values.__getitem__, prepared.names)]
    line.send_query_prepared(prepared.name, written)
    line.pipeline_sync()
    return prepared


class PreparedStatement:
    """A statement as a session knows it: with $1 instead of %(name)s, and the names in their order."""

    __slots__ = ("_columns", "name", "names", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name.encode()
        self.text, self.names = numbered(text)
        self._columns: list[tuple[str, Any]] = []

    def rows(self, result: PGresult | None) -> list[Row]:
        """Its columns are the same each time, and asking for them costs more than reading one row."""
        if result is None:
            return []
        if not self._columns:
            self._columns = [
                ((result.fname(n) or b"").decode(), _READERS.get(result.ftype(n), bytes.decode))
                for n in range(result.nfields)
            ]
        return [
            {
                name: None if (value := result.get_value(row, n)) is None else read(value)
                for n, (name, read) in enumerate(self._columns)
            }
            for row in range(result.ntuples)
        ]


def _written(value: Any) -> bytes | None:
    if value is None:
        return None
    return (array(value) if isinstance(value, list) else str(value)).encode()


#: What most values are needs no look at what else they may be.
_WRITERS: dict[type, Callable[[Any], bytes | None]] = {str: str.encode, int: b"%d".__mod__}


def _answer(connection: PooledConnection) -> tuple[PGresult | None, PGresult | None]:
    """Of one transaction, once it has ended: its last answer, and the first error in it."""
    line, hears = connection.driver.pgconn, connection.hears
    last = error = None
    is_pause = False
    while True:
        while line.is_busy():
            hears.poll()
            line.consume_input()
        result = line.get_result()
        if result is None:
            if is_pause or line.status == ConnStatus.BAD:
                raise psycopg.OperationalError("the server sent no answer any more")
        elif result.status == ExecStatus.PIPELINE_SYNC:
            return last, error
        elif result.status == ExecStatus.FATAL_ERROR:
            error = error or result
        else:
            last = result
        is_pause = result is None
