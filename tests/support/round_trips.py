"""A Database that counts the statements which travel, and may be far away."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import Any

from unstuck.store.database import Database, Row, T, Transaction
from unstuck.store.hint import ANYWHERE, Hint


class _Counted:
    def __init__(self, inner: Transaction, away: RoundTrips) -> None:
        self._inner = inner
        self._away = away

    @property
    def one_table_per_statement(self) -> bool:
        return self._inner.one_table_per_statement

    def all(self, statement: str, /, **values: Any) -> list[Row]:
        self._away.travel(statement)
        return self._inner.all(statement, **values)

    def tuples(self, statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
        self._away.travel(statement)
        return self._inner.tuples(statement, **values)

    def one(self, statement: str, /, **values: Any) -> Row | None:
        self._away.travel(statement)
        return self._inner.one(statement, **values)

    def run(self, statement: str, /, **values: Any) -> int:
        self._away.travel(statement)
        return self._inner.run(statement, **values)

    def is_refusal(self, error: Exception) -> bool:
        return self._inner.is_refusal(error)

    def apart(self, work: Callable[[], object]) -> Exception | None:
        return self._inner.apart(work)


class RoundTrips:
    """Around a real one: `delay` is slept through before each statement."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.delay = 0.0
        self.statements: list[str] = []

    def travel(self, statement: str) -> None:
        self.statements.append(statement)
        if self.delay:
            sleep(self.delay)

    def write(self, work: Callable[[Transaction], T], within: float | None = None, **options: Any) -> T:
        return self._inner.write(lambda t: work(_Counted(t, self)), within, **options)

    def read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        return self._inner.read(lambda t: work(_Counted(t, self)), within)

    def once(self, statement: str, /, **values: Any) -> list[Row]:
        self.travel(statement)
        return self._inner.once(statement, **values)

    def hint(self, hint: Hint = ANYWHERE) -> None:
        self.travel("notify_idle")
        self._inner.hint(hint)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
