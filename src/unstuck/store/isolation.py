"""Isolation: work over many items of which each stands for itself. What fails alone is set aside, the rest is done.

Whoever leaves an item out of a batch because it is set aside holds its row in quarantine; whoever tries it again
takes that row first. So a try comes after such a batch, and sees all that it knew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from unstuck.store import quarantine
from unstuck.store.database import Database, Transaction
from unstuck.store.halves import in_halves
from unstuck.store.port import QuarantineDuty

K = TypeVar("K", bound=Hashable)

#: Over some of the items, in one transaction: how many moved, and whether somebody idle should look.
Act = Callable[[Transaction, Sequence[K]], tuple[int, bool]]


class Isolation:
    def __init__(self, database: Database) -> None:
        self._database = database

    def each(self, items: Sequence[K], act: Act[K]) -> tuple[int, dict[K, str]]:
        """How many moved, and of those that failed alone what was said."""
        moved, woke = 0, False

        def write(some: Sequence[K]) -> None:
            nonlocal moved, woke
            done, has_woken = self._database.write(lambda t: act(t, some))
            moved, woke = moved + done, woke or has_woken

        try:
            failed = in_halves(items, write)
        finally:
            if woke:
                self._database.hint()
        return moved, {item: quarantine.reason(problem) for item, problem in failed.items()}

    def sweep(self, duty: QuarantineDuty, items: Sequence[int], act: Act[int], by: str) -> int:
        """How many moved; those that failed alone are set aside."""
        moved, errors = self.each(items, act)
        if errors:
            self._database.write(lambda t: quarantine.put(t, duty, errors, by))
        return moved

    def try_again(self, duty: QuarantineDuty, act: Act[int], by: str, batch: int) -> int:
        """What is set aside leaves with what is done about it, or because there is nothing left to do."""

        def work(t: Transaction, items: Sequence[int]) -> tuple[int, bool]:
            taken = sorted(row["item"] for row in t.all("take_quarantined", duty=duty, items=list(items)))
            return act(t, taken) if taken else (0, False)

        due = self._database.read(lambda t: t.all("quarantine_due", duty=duty, batch=batch))
        return self.sweep(duty, [row["item"] for row in due], work, by) if due else 0
