"""One session's statements, straight through libpq: a cursor of the driver costs four times as much as all the rest.

Values are written and rows are read by the driver's own Transformer, so they are what they would be with a cursor. A
statement is prepared once it was asked often enough, for each combination of the types of its values.
"""

from __future__ import annotations

import re
import select
from functools import cache
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from unstuck.store.database import Row

#: So many plans a session keeps on the server; whatever comes later is planned each time.
MOST_PREPARED = 200
_NAMED = re.compile(r"%\((\w+)\)s|%%")
#: What the server says of a plan that it does not know any more, or whose tables have changed: nothing was done.
_LOST_PLAN = (errors.InvalidSqlStatementName, errors.FeatureNotSupported)


@cache
def numbered(text: str) -> tuple[bytes, tuple[str, ...]]:
    """With $1 instead of %(name)s, and the names in their order."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return _NAMED.sub(number, text).encode(), tuple(names)


def flush(line: PGconn) -> None:
    """A large batch is more than a socket takes at once."""
    while line.flush():
        poller = select.poll()
        poller.register(line.socket, select.POLLIN | select.POLLOUT)
        if any(happened & ~select.POLLOUT for _, happened in poller.poll()):
            line.consume_input()


class _Plan:
    """What a session knows of a statement with values of certain types."""

    __slots__ = ("asked", "columns", "name")

    def __init__(self) -> None:
        self.asked = 0
        #: Under which it is prepared; until then empty.
        self.name = b""
        self.columns: list[str] = []


class PostgresSession:
    """`prepare`: how often a statement is asked before it is prepared; None: never."""

    __slots__ = ("_hears", "_line", "_plans", "_prepare", "_prepared", "_transformer", "driver")

    def __init__(self, driver: psycopg.Connection[Any], prepare: int | None) -> None:
        self.driver = driver
        self._line = driver.pgconn
        self._transformer = Transformer(driver)
        self._prepare = prepare
        self._prepared = 0
        self._plans: dict[tuple[str, tuple[int, ...] | None], _Plan] = {}
        #: Answers when there is something to read.
        self._hears = select.poll()
        self._hears.register(driver.pgconn.socket, select.POLLIN)

    def all(self, text: str, values: dict[str, Any]) -> list[Row]:
        result, plan = self._ask(text, values)
        columns = plan.columns or [(result.fname(n) or b"").decode() for n in range(result.nfields)]
        if plan.name:
            plan.columns = columns
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, lambda row: dict(zip(columns, row, strict=True)))

    def tuples(self, text: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
        result, _ = self._ask(text, values)
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def run(self, text: str, values: dict[str, Any]) -> int:
        """How many rows it wrote, or found."""
        result, _ = self._ask(text, values)
        return result.ntuples if result.status == ExecStatus.TUPLES_OK else result.command_tuples or 0

    def _ask(self, text: str, values: dict[str, Any]) -> tuple[PGresult, _Plan]:
        sql, names = numbered(text)
        write = self._transformer
        written = write.dump_sequence([values[name] for name in names], [PyFormat.AUTO] * len(names))
        key = (text, write.types)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _Plan()
        plan.asked += 1
        types, formats = write.types, write.formats
        if not plan.name and self._is_worth_it(plan):
            self._line.send_prepare(name := b"unstuck_%d" % self._prepared, sql, types)
            self._answer()
            plan.name = name
            self._prepared += 1
        if not plan.name:
            self._line.send_query_params(sql, written, types, formats)
            return self._answer(), plan
        self._line.send_query_prepared(plan.name, written, formats)
        try:
            return self._answer(), plan
        except _LOST_PLAN:
            del self._plans[key]
            if self._line.transaction_status != TransactionStatus.IDLE:
                raise
            self._line.send_query_params(sql, written, types, formats)
            return self._answer(), _Plan()

    def _is_worth_it(self, plan: _Plan) -> bool:
        return self._prepare is not None and plan.asked > self._prepare and self._prepared < MOST_PREPARED

    def _answer(self) -> PGresult:
        """The last one of a statement, once it has ended; raises if it failed."""
        line, last, failed = self._line, None, None
        flush(line)
        while True:
            while line.is_busy():
                self._hears.poll()
                line.consume_input()
            result = line.get_result()
            if result is None:
                break
            last = result
            if result.status == ExecStatus.FATAL_ERROR:
                failed = failed or result
        if failed is not None:
            raise errors.error_from_result(failed)
        if last is None:
            raise psycopg.OperationalError("the server sent no answer any more")
        return last
