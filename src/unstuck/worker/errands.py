"""Errands: what handlers ask of the database while they run. Their journal, finished steps, spending, partial
results, children.

On a thread of its own. Steps that were finished while a store call was under way are recorded together in the next.
An errand is kept until the database has answered it, for as long as its attempt is ours: its handler sleeps, and a
request to stop wakes it. A report that ends an attempt goes behind the errands that were sent before it, so that what
a handler had finished is stored before it ends; but it never waits for a store that is away.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from unstuck.clock import Clock
from unstuck.executor.messages import (
    ChildAnswer,
    Done,
    Fenced,
    Gather,
    GatherAnswer,
    JournalPage,
    KeepPart,
    LoadJournal,
    RecordStep,
    Refused,
    Reply,
    Spawn,
    Spend,
    SpentAnswer,
)
from unstuck.model.errors import StoreError, UnstuckError
from unstuck.model.job import AttemptRef
from unstuck.model.payload import clean_text
from unstuck.store.port import NewChild, NewStep, Report, Store, Verdict
from unstuck.worker.ledger import Ledger
from unstuck.worker.processes import Errand

#: Steps of one store call, and other errands of one tick: between two ticks the watchdog sees a sign of life.
BATCH = 200
CALLS = 5
#: So many bytes of results go into one store call; a single one may be larger.
MOST_BYTES = 4 << 20
_REST = 1.0
_TRIES = 3
_MAX_MESSAGE = 8 << 10


class Errands:
    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        *,
        answered: Callable[[Errand, Reply], None],
        revoked: Callable[[AttemptRef], None],
        report: Callable[[list[Report]], None],
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._answered = answered
        self._revoked = revoked
        self._report = report
        self._lock = threading.Lock()
        self._queue: deque[Errand] = deque()
        #: How many of each attempt have no answer yet, and the reports that wait for those.
        self._open: dict[AttemptRef, int] = {}
        self._held: dict[AttemptRef, Report] = {}
        self._arrived = threading.Event()
        self._most = BATCH
        #: Of this thread alone: what a tick is about and has no answer yet.
        self._chosen: dict[tuple[AttemptRef, int], Errand] = {}
        #: How often an errand failed all by itself while the store answered others.
        self._doubts: dict[tuple[AttemptRef, int], int] = {}

    # --- from the supervisor's thread ---------------------------------------------------------------------------
    def take(self, errand: Errand) -> None:
        with self._lock:
            self._queue.append(errand)
            self._open[errand.ref] = self._open.get(errand.ref, 0) + 1
        self._arrived.set()

    def hold(self, report: Report) -> bool:
        """Whether the report goes to the settler by way of here, behind what its handler had sent before."""
        if not self._open:
            return False
        with self._lock:
            if report.ref not in self._open:
                return False
            self._held[report.ref] = report
        self._arrived.set()
        return True

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        if not self._queue:
            self._clock.wait(self._arrived, _REST)
        self._arrived.clear()
        self._choose()
        try:
            chosen = tuple(self._chosen.values())
            self._record([errand for errand in chosen if isinstance(errand.question, RecordStep)])
            for errand in chosen:
                if not isinstance(errand.question, RecordStep):
                    self._finish(errand, self._reply(errand))
        finally:
            self._put_back()
        return 0.0

    def _choose(self) -> None:
        """What this tick is about. Nobody waits for an errand of an attempt that is not ours any more."""
        steps = others = size = 0
        while steps < self._most and others < CALLS and size < MOST_BYTES:
            with self._lock:
                if not self._queue:
                    return
                errand = self._queue.popleft()
            self._chosen[errand.ref, errand.serial] = errand
            if not self._ledger.is_ours(errand.ref):
                self._close(errand)
            elif isinstance(errand.question, RecordStep):
                steps += 1
                size += len(errand.question.result)
            else:
                others += 1

    def _record(self, errands: Sequence[Errand]) -> None:
        """Many at once; one by one if one of them is refused, since the others have nothing to do with that."""
        if not errands:
            return
        try:
            verdicts = self._store.record_steps([_step(errand) for errand in errands])
        except StoreError as error:
            self._most = max(1, self._most // 4)  # a batch that a slow store cannot take in time would never land
            if len(errands) == 1:
                self._doubt(errands[0], error)
            raise
        except Exception as error:
            if len(errands) == 1:
                self._finish(errands[0], _refusal(error))
            else:
                self._most = 1
            return
        self._most = min(BATCH, 2 * self._most)
        for errand, verdict in zip(errands, verdicts, strict=True):
            self._finish(errand, Fenced() if verdict is Verdict.FENCED else Done())

    def _reply(self, errand: Errand) -> Reply:
        try:
            answer = self._ask(errand)
        except StoreError as error:
            self._doubt(errand, error)
            raise
        except Exception as error:
            return _refusal(error)
        return Fenced() if answer is None else answer

    def _ask(self, errand: Errand) -> Reply | None:
        """None: fenced."""
        ref, store = errand.ref, self._store
        match errand.question:
            case LoadJournal(after=after):
                journal = store.journal(ref, after)
                return None if journal is None else JournalPage(journal)
            case Spend(amounts=amounts):
                spent = store.spend(ref, errand.serial, amounts)
                return None if spent is None else SpentAnswer(spent)
            case KeepPart(name=name, value=value):
                verdict = store.keep_part(ref, errand.serial, name, value)
                return None if verdict is Verdict.FENCED else Done()
            case Spawn(name=name, ordinal=ordinal, job=job, on_end=on_end):
                child = store.spawn(NewChild(ref, name, ordinal, job, on_end))
                return None if child is None else ChildAnswer(child)
            case Gather(children=children, release_target=release_target):
                return GatherAnswer(store.gather(ref, children, release_target))
            case question:
                raise TypeError(f"no errand: {type(question).__name__}")

    def _finish(self, errand: Errand, answer: Reply) -> None:
        self._answered(errand, answer)
        if isinstance(answer, Fenced):
            self._revoked(errand.ref)
        self._close(errand)

    def _close(self, errand: Errand) -> None:
        """It is under way no more; with the last of its attempt a report that waited for them goes on."""
        self._chosen.pop((errand.ref, errand.serial), None)
        self._doubts.pop((errand.ref, errand.serial), None)
        with self._lock:
            left = self._open.pop(errand.ref) - 1
            if left:
                self._open[errand.ref] = left
                return
            report = self._held.pop(errand.ref, None)
        if report is not None:
            self._report([report])

    def _put_back(self) -> None:
        """What was not answered, in its order: spendings of an attempt must not overtake each other. Except those of
        attempts that have ended: an end does not wait for a store that is away."""
        if not self._chosen:
            return
        with self._lock:
            self._queue.extendleft(reversed(self._chosen.values()))
            dropped = [errand for errand in self._queue if errand.ref in self._held]
            if dropped:
                self._queue = deque(errand for errand in self._queue if errand.ref not in self._held)
        self._chosen.clear()
        for errand in dropped:
            self._close(errand)

    def _doubt(self, errand: Errand, error: StoreError) -> None:
        """It failed all by itself. If the store answers others, it is this errand that no call can carry: its handler
        is told in the end, and those behind it get their turn."""
        try:
            self._store.probe()
        except StoreError:
            return
        key = (errand.ref, errand.serial)
        self._doubts[key] = self._doubts.get(key, 0) + 1
        if self._doubts[key] >= _TRIES:
            self._finish(errand, _refusal(error))


def _step(errand: Errand) -> NewStep:
    question = errand.question
    assert isinstance(question, RecordStep)
    return NewStep(errand.ref, question.name, question.ordinal, question.result, question.ms)


def _refusal(error: Exception) -> Refused:
    if not isinstance(error, UnstuckError):
        logging.getLogger("unstuck").error("an errand failed", exc_info=error)
        return Refused(UnstuckError.__name__, clean_text(repr(error), _MAX_MESSAGE))
    return Refused(type(error).__name__, clean_text(str(error), _MAX_MESSAGE))
