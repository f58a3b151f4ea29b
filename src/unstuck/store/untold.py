"""Untold: news that the database refuses do not keep their fact from happening.

Theory of operation. News are told in the transaction of their fact. If the database refuses them (a trigger raises,
a constraint does not hold), the transaction has failed on PostgreSQL. So a driver runs it once more, and this time
each piece of news stands under a savepoint: what is refused again is left out, said, and noted for `health`. A
transaction whose news can be stored pays for none of that. A job's move and its event are no news: they still commit
together or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from unstuck.store.database import T, Transaction

_is_careful: ContextVar[bool] = ContextVar("unstuck_is_careful", default=False)


class Untold(Exception):
    """Its news were refused: for the driver, which runs the transaction again with `carefully`."""


def carefully(work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """The same, with a savepoint for each piece of news."""

    def run(t: Transaction) -> T:
        before = _is_careful.set(True)
        try:
            return work(t)
        finally:
            _is_careful.reset(before)

    return run


def is_careful() -> bool:
    return _is_careful.get()
