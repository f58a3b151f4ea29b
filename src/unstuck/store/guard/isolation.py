"""Isolation: how a verb that serves everybody treats the one item that cannot be written.

Rows that another transaction holds are skipped by the statements themselves, and come with the next sweep. Whatever
else fails is found by bisection (`bisection.py`). A batch waits a moment for locks that cannot be skipped, its parts
hardly at all: finding one held row among hundreds takes well under a second. Sweeps put what they found into
quarantine, leave it out of their batches, and try some of it again, one by one.

A batch of the inbox that leaves an item out because it is in quarantine holds the item's row there; a retry of that
item takes the row first. So a retry comes after such a batch, and sees all that the batch wrote.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from unstuck.clock import boot
from unstuck.model.errors import StoreBusy
from unstuck.model.payload import clean_text
from unstuck.store.database import Database, Transaction
from unstuck.store.guard import quarantine
from unstuck.store.guard.bisection import AWAY, MOST_FAILURES, bisect_batch
from unstuck.store.port import HELD, QuarantineDuty
from unstuck.telemetry import emit

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)

#: How long a batch waits for a lock that cannot be skipped, and how long its parts do; in seconds.
PATIENCE = 0.25
IMPATIENCE = 0.05
#: When halving ends: what was not tried by then comes with the next call.
LONGEST = 4.0
#: Items of one transaction of a sweep, and how many of the quarantine a sweep tries again.
AT_ONCE = 100
RETRIED = 20
#: How many of those that met a lock get another, longer try: most locks pass, and are no news.
_SECOND_CHANCES = 3
#: How many that could not even be set aside are told of, each time.
_TOLD = 5
BY = "sweep"


class Undone(Exception):
    """What was to be done is not due any more: nothing was written, and nothing is wrong with anybody."""


class Item(Protocol):
    """What a sweep moves; named by its job."""

    @property
    def job(self) -> int: ...

    def __hash__(self) -> int: ...


I = TypeVar("I", bound=Item)  # noqa: E741
Move = Callable[[Transaction, Sequence[I]], tuple[list[T], bool]]


def in_parts(
    items: Sequence[K], act: Callable[[Sequence[K], float], object], most: int = MOST_FAILURES
) -> dict[K, Exception]:
    """Which of them fail alone; `act` is one transaction over some of them, and gets the seconds that it may wait."""
    waits = itertools.chain((PATIENCE,), itertools.repeat(IMPATIENCE))
    return bisect_batch(items, lambda some: act(some, next(waits)), within=LONGEST, most=most)


def written(
    database: Database, act: Callable[[Transaction, Sequence[K]], tuple[R, bool]], items: Sequence[K], patience: float
) -> R:
    """What `act` answered, in one transaction; an idle worker looks, if it said so."""
    answer, woke = database.write(lambda t: act(t, items), patience=patience)
    if woke:
        database.hint()
    return answer


def problem_of(error: Exception) -> str:
    """An error as people may read it, on one line."""
    return clean_text(quarantine.reason(error), 500)


def is_about_data(error: BaseException) -> bool:
    """Whether the values themselves are what a database can never take (DataError, as drivers call it)."""
    return isinstance(error, UnicodeError | OverflowError) or any(
        cls.__name__ == "DataError" for cls in type(error).__mro__
    )


def set_aside(database: Database, duty: QuarantineDuty, problems: Mapping[int, str], by: str) -> frozenset[int]:
    """Those that could not even be set aside, because somebody holds their row in the quarantine, or the database
    refuses that too: they stay where they are and come again, and nobody else waits for them."""

    def put(items: Sequence[int], patience: float, *, is_news: bool = True) -> None:
        some = {item: problems[item] for item in items}
        database.write(lambda t: quarantine.put(t, duty, some, by, is_news=is_news), patience=patience)

    if not problems:
        return frozenset()
    failed: Mapping[int, Exception] = {}
    try:
        failed = in_parts(sorted(problems), put)
        # It may be the news that is refused.
        failed = in_parts(list(failed), lambda items, _: put(items, IMPATIENCE, is_news=False))
    except AWAY:
        raise
    except Exception as error:
        failed = failed or dict.fromkeys(problems, error)
    for item, problem in itertools.islice(failed.items(), _TOLD):
        emit("quarantine_failed", level=logging.WARNING, duty=duty, item=item, error=problem_of(problem))
    return frozenset(failed)


def leave(database: Database, duty: QuarantineDuty, item: int) -> None:
    """It is done. If somebody holds its row there, a sweep takes it away later."""
    try:
        database.write(lambda t: t.run("leave_quarantine", duty=duty, item=item), patience=IMPATIENCE)
    except AWAY:
        raise
    except Exception as error:
        emit("quarantine_failed", level=logging.WARNING, duty=duty, item=item, error=problem_of(error))


class Sweep:
    """Moves items in small transactions. What is set aside waits under `duty`."""

    def __init__(self, database: Database, duty: QuarantineDuty) -> None:
        self._database = database
        self._duty = duty

    def move(self, items: Sequence[I], act: Move[I, T], at_once: int = AT_ONCE) -> list[T]:
        """What `act` answered, and no word about those that are held or failed."""
        moved: list[T] = []
        for start in range(0, len(items), at_once):
            some = items[start : start + at_once]
            failed = in_parts(some, lambda few, patience: moved.extend(self._write(act, few, patience)))
            waited = [item for item, error in failed.items() if isinstance(error, StoreBusy)][:_SECOND_CHANCES]
            again = in_parts(waited, lambda few, _: moved.extend(self._write(act, few, PATIENCE)))
            held = {item: again[item] for item in waited if item in again}
            refused = {item: error for item, error in failed.items() if item not in waited}
            self._set_aside({item.job: problem_of(error) for item, error in (refused | held).items()})
        return moved

    def again(self, items: Iterable[I], act: Move[I, T]) -> list[T]:
        """These were set aside: each by itself, and out of the quarantine once it has moved. What is slow has its
        end, those behind it come first the next time."""
        moved: list[T] = []
        until = boot() + IMPATIENCE * RETRIED
        for item in items:
            if boot() >= until:
                break
            try:
                answers = self._write(act, [item], IMPATIENCE)
            except AWAY:
                raise
            except Exception as error:
                self._set_aside({item.job: problem_of(error)})
                continue
            if answers:
                self._leave(item.job)
                moved += answers
            else:
                self._set_aside({item.job: HELD})
        return moved

    def _write(self, act: Move[I, T], items: Sequence[I], patience: float) -> list[T]:
        try:
            return written(self._database, act, items, patience)
        except Undone:
            return []

    def _leave(self, job: int) -> None:
        leave(self._database, self._duty, job)

    def _set_aside(self, problems: Mapping[int, str]) -> None:
        set_aside(self._database, self._duty, problems, BY)


#: Over some of the items, in one transaction: how many moved, and whether an idle worker should look.
Act = Callable[[Transaction, Sequence[K]], tuple[int, bool]]


class Isolation:
    """For the inbox, and for what only has numbers: see the header about how these are tried again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def each(self, items: Sequence[K], act: Act[K]) -> tuple[int, dict[K, str]]:
        """How many moved, and of those that failed alone what was said."""
        moved: list[int] = []
        failed = in_parts(items, lambda some, patience: moved.append(written(self._database, act, some, patience)))
        return sum(moved), {item: problem_of(problem) for item, problem in failed.items()}

    def sweep(self, duty: QuarantineDuty, items: Sequence[int], act: Act[int], by: str) -> int:
        """How many moved; those that failed alone are set aside."""
        moved, errors = self.each(items, act)
        set_aside(self._database, duty, errors, by)
        return moved

    def try_again(self, duty: QuarantineDuty, act: Act[int], by: str, batch: int) -> int:
        """What is set aside leaves with what is done about it, or because there is nothing left to do."""

        def work(t: Transaction, items: Sequence[int]) -> tuple[int, bool]:
            taken = sorted(row["item"] for row in t.all("take_quarantined", duty=duty, items=list(items)))
            return act(t, taken) if taken else (0, False)

        due = self._database.read(lambda t: t.all("quarantine_due", duty=duty, batch=batch))
        return self.sweep(duty, [row["item"] for row in due], work, by) if due else 0
