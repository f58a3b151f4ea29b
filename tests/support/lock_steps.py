"""Which locks a statement takes, read from its text; and a Database that keeps what each transaction sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from unstuck.store.database import Database, Row, T, Transaction
from unstuck.store.drivers.statements import Statements
from unstuck.store.lock_order import ORDER

_KIND_OF = {table: kind for kind, table in ORDER.items() if table is not None}
_ADVISORY = {"lock_addresses": "addresses", "shut_guard": "guard"}
_WRITTEN = re.compile(
    r"(?:(?<!FOR )(?<!KEY )(?<!DO )(?:UPDATE|DELETE FROM)|INSERT INTO(?=[^;]*\bDO UPDATE\b)) (unstuck_\w+)"
)
_READ = re.compile(r"(?:FROM|JOIN)\s+(unstuck_\w+)(?:\s+AS)?(?:\s+(?!WHERE|ORDER|CROSS|JOIN|LEFT|LIMIT)(\w+))?")
_LOCKED = re.compile(r"FOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)(?: OF (\w+))?( SKIP LOCKED)?")
_POSTGRES = Statements("postgres")


class LockStep(NamedTuple):
    kind: str
    waits: bool


def locks_of(statement: str) -> list[LockStep]:
    """In the order of the text. Rows that a statement writes and has chosen by SKIP LOCKED are locked already."""
    if statement in _ADVISORY:
        return [LockStep(_ADVISORY[statement], waits=True)]
    text = _POSTGRES[statement]
    found: list[LockStep] = []
    for lock in _LOCKED.finditer(text):
        tables = {alias or table: table for table, alias in _READ.findall(_select_before(text, lock.start()))}
        chosen = [tables[lock[1]]] if lock[1] else tables.values()
        found += [LockStep(_KIND_OF[table], waits=lock[2] is None) for table in chosen if table in _KIND_OF]
    skips = "SKIP LOCKED" in text
    return found + [LockStep(_KIND_OF[table], not skips) for table in _WRITTEN.findall(text) if table in _KIND_OF]


def _select_before(text: str, end: int) -> str:
    """Of the SELECT that a FOR clause ends, all that is not inside parentheses."""
    depth, kept = 0, []
    for sign in reversed(text[:end]):
        depth += (sign == ")") - (sign == "(")
        if depth < 0:
            break
        if depth == 0:
            kept.append(sign)
    return "".join(reversed(kept))


class _Kept:
    def __init__(self, inner: Transaction, sent: list[str]) -> None:
        self._inner, self._sent = inner, sent

    @property
    def one_table_per_statement(self) -> bool:
        return self._inner.one_table_per_statement

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        self._sent.append(statement)
        return self._inner.all(statement, **values)

    def tuples(self, statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
        self._sent.append(statement)
        return self._inner.tuples(statement, **values)

    def one(self, statement: str, /, **values: Any) -> Row | None:
        self._sent.append(statement)
        return self._inner.one(statement, **values)

    def run(self, statement: str, /, **values: Any) -> int:
        self._sent.append(statement)
        return self._inner.run(statement, **values)

    def is_refusal(self, error: Exception) -> bool:
        return self._inner.is_refusal(error)

    def apart(self, work: Callable[[], object]) -> Exception | None:
        return self._inner.apart(work)


class LockWatch:
    """Around a real database: the statements of each transaction that wrote, committed or not."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.transactions: list[list[str]] = []

    def write(self, work: Callable[[Transaction], T], within: float | None = None, **options: Any) -> T:
        def kept(t: Transaction) -> T:
            self.transactions.append([])
            return work(_Kept(t, self.transactions[-1]))

        return self._inner.write(kept, within, **options)

    def once(self, statement: str, /, **values: Any) -> list[Row]:
        self.transactions.append([statement])
        return self._inner.once(statement, **values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
