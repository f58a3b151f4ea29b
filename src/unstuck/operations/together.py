"""Together: submits that arrive while a transaction is under way are stored by the next one, all in one transaction.

Nobody waits for a timer: a submit that finds nothing under way goes at once, on its own thread, and that thread goes
on with what has gathered meanwhile until nothing has. Each is checked by itself and told its own outcome, once it is
committed.

A transaction that is refused, or that meets a row that somebody holds for longer than a moment, is taken apart. Each
tenant's jobs are tried again at once, those that could meet such a row (with a key, with an id that the caller
chose, after other jobs) apart from the others. What fails again is halved, on threads of its own, until the odd one
is alone. If that one would wait, it waits alone and with the usual patience.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from unstuck.clock import boot
from unstuck.intake.signing import tell_refused
from unstuck.intake.submit import Submitter
from unstuck.model.errors import (
    OutcomeUnknown,
    SchemaMismatch,
    SignatureRefused,
    StoreBusy,
    StoreLocked,
    StoreUnavailable,
)
from unstuck.model.job import NewJob
from unstuck.operations.submitting import AskedJob, new_jobs, views
from unstuck.records import dataclass
from unstuck.store.port import Submitted, asking_from
from unstuck.views.jobs import NewJobView

#: Of one transaction: more would make the first wait for the last.
MOST = 250
MOST_CHARACTERS = 1 << 20
#: Submits that are not told yet; more are refused.
MOST_UNTOLD = 4000
#: Seconds that a transaction of many waits for a row that somebody holds, and seconds that its pieces do.
PATIENCE = 0.03
IMPATIENCE = 0.01
#: Threads that take transactions apart, and threads of those that wait alone: few, each may hold a connection.
HALVING, LONE = 2, 2
#: Seconds after which somebody who still waits for such a thread is refused.
LONGEST = 3.0

#: Of these no job is to blame.
_AWAY = (StoreUnavailable, StoreLocked, OutcomeUnknown, SchemaMismatch)

#: Called once, on whatever thread has the outcome; it must not raise.
Tell = Callable[[NewJobView | Exception], None]


@dataclass(slots=True, eq=False)
class _Part:
    """One submit on its way."""

    asked: AskedJob
    tell: Tell
    is_told: bool = False


@dataclass(slots=True, eq=False)
class _Ready:
    """The same, checked."""

    part: _Part
    job: NewJob

    @property
    def piece(self) -> tuple[str, bool]:
        """What it is tried with when it cannot be stored with all others: its tenant's, and whether it could wait."""
        return self.job.tenant, bool(self.job.key or self.job.has_given_id or self.job.after)


class Together:
    """Of any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Part] = deque()
        self._untold = 0
        self._is_storing = False
        self._halving = ThreadPoolExecutor(HALVING, thread_name_prefix="unstuck-submits")
        self._lone = ThreadPoolExecutor(LONE, thread_name_prefix="unstuck-lone-submits")

    def close(self) -> None:
        """What was joined is told first."""
        self._halving.shutdown()
        self._lone.shutdown()

    def join(self, asked: Sequence[tuple[AskedJob, Tell]]) -> None:
        """In this order. StoreBusy if there are too many: then none of them was taken."""
        parts = [_Part(one, tell) for one, tell in asked]
        with self._lock:
            if self._untold + len(parts) > MOST_UNTOLD:
                raise StoreBusy(f"{self._untold:,} submits wait to be stored; nothing was written, try again")
            self._untold += len(parts)
            self._waiting += parts
            if self._is_storing:
                return
            self._is_storing = True
        while some := self._next():
            self._see_to(some, partial(self._store, some))

    def _next(self) -> list[_Part]:
        with self._lock:
            some = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
            self._is_storing = bool(some)
            return some

    def _store(self, parts: Sequence[_Part]) -> None:
        ready: list[_Ready] = []
        for part, job in zip(parts, new_jobs([part.asked for part in parts]), strict=True):
            if isinstance(job, SignatureRefused):  # what is written about it is not the others' to wait for
                self._halving.submit(self._see_to, [part], partial(self._refuse, part, job))
            elif isinstance(job, Exception):
                self._tell(part, job)
            else:
                ready.append(_Ready(part, job))
        for group in _groups(ready):
            if (error := self._try(group, PATIENCE)) is None:
                continue
            pieces = defaultdict[tuple[str, bool], list[_Ready]](list)
            for one in group:
                pieces[one.piece].append(one)
            for piece in pieces.values():
                problem = error if len(pieces) == 1 else self._try(piece, IMPATIENCE)
                if problem is not None:
                    self._refused(piece, problem)

    def _try(self, group: Sequence[_Ready], patience: float) -> Exception | None:
        """All in one transaction. An error: nothing of it was stored, and nobody is told yet."""
        try:
            stored = _submitted(group, patience)
        except _AWAY as error:
            self._tell_all([one.part for one in group], error)
        except Exception as error:
            return error
        else:
            self._answer(group, stored)
        return None

    def _refuse(self, part: _Part, error: SignatureRefused) -> None:
        caller = part.asked.caller
        with asking_from(caller.key, caller.address):
            tell_refused(caller.store, error, caller.by)
        self._tell(part, error)

    def _refused(self, group: Sequence[_Ready], error: Exception) -> None:
        parts = [one.part for one in group]
        if len(group) > 1:
            self._halving.submit(self._see_to, parts, partial(self._halve, group))
        elif isinstance(error, StoreBusy):
            self._lone.submit(self._see_to, parts, partial(self._wait_alone, group, error, boot() + LONGEST))
        else:
            self._tell_all(parts, error)

    def _halve(self, group: Sequence[_Ready]) -> None:
        """The first ones first: where there is room for some only, they have it."""
        left = _halves(group)
        while left:
            some = left.pop()
            error = self._try(some, IMPATIENCE)
            if error is not None and len(some) > 1:
                left += _halves(some)
            elif error is not None:
                self._refused(some, error)

    def _wait_alone(self, group: Sequence[_Ready], error: Exception, until: float) -> None:
        if boot() < until:
            self._answer(group, _submitted(group))
        else:
            self._tell_all([one.part for one in group], error)

    def _answer(self, group: Sequence[_Ready], stored: Sequence[Submitted]) -> None:
        for one, view in zip(group, views([one.part.asked for one in group], stored), strict=True):
            self._tell(one.part, view)

    def _see_to(self, parts: Sequence[_Part], work: Callable[[], None]) -> None:
        """Whatever goes wrong: nobody waits for an answer that nobody gives."""
        try:
            work()
        except Exception as error:
            self._tell_all(parts, error)

    def _tell_all(self, parts: Sequence[_Part], error: Exception) -> None:
        for part in parts:
            self._tell(part, error)

    def _tell(self, part: _Part, outcome: NewJobView | Exception) -> None:
        if not part.is_told:
            part.is_told = True
            with self._lock:
                self._untold -= 1
            part.tell(outcome)


def _submitted(group: Sequence[_Ready], patience: float | None = None) -> list[Submitted]:
    return Submitter(group[0].part.asked.caller.store).submit([one.job for one in group], patience)


def _groups(ready: Sequence[_Ready]) -> Iterator[list[_Ready]]:
    """As many as one transaction takes."""
    group: list[_Ready] = []
    size = 0
    for one in ready:
        if group and size + len(one.job.payload) > MOST_CHARACTERS:
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.job.payload)
    if group:
        yield group


def _halves(group: Sequence[_Ready]) -> list[Sequence[_Ready]]:
    """The first one last: that is where the next one is taken from."""
    half = len(group) // 2
    return [group[half:], group[:half]]
