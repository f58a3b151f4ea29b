"""Errands: what handlers ask of the database while they run. Their journal, finished steps, spending, partial
results, children.

On a thread of its own. Steps that were finished while a store call was under way are recorded together in the next.
An errand is kept until the database has answered it, for as long as its attempt is ours: its handler sleeps, and a
request to stop wakes it. A report that ends an attempt goes behind the errands that were sent before it, so that what
a handler had finished is stored before it ends; but it never waits for a store that is away.

An attempt one of whose rows somebody else holds rests for a while, with all its errands in their order; those of
others go on. It is tried again, and after some time its handler gets the error. What the database refuses is answered
at once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unstuck.clock import Clock
from unstuck.executor.messages import (
    ChildAnswer,
    Done,
    Fenced,
    GatherAnswer,
    GatherMessage,
    JournalPage,
    KeepPart,
    LoadJournal,
    RecordStep,
    RefusedMessage,
    Reply,
    SpawnMessage,
    Spend,
    SpentAnswer,
)
from unstuck.model.errors import StoreBusy, StoreError, UnstuckError
from unstuck.model.job import AttemptRef
from unstuck.model.payload import clean_text
from unstuck.store.port import HELD, NewChild, NewStep, Report, Store, Verdict
from unstuck.worker.ledger import Ledger
from unstuck.worker.processes import FlowCall

#: Steps of one store call, and other errands of one tick: between two ticks the watchdog sees a sign of life.
BATCH = 200
CALLS = 5
#: So many bytes of results go into one store call; a single one may be larger.
MOST_BYTES = 4 << 20
_REST = 1.0
_TRIES = 3
_MAX_MESSAGE = 8 << 10
#: An attempt whose row somebody holds: its first rest, its longest, and when its handler is told.
_SHORT_REST = 0.02
_LONG_REST = 1.0
_PATIENCE = 15.0


@dataclass(slots=True)
class _Trouble:
    """Somebody holds a row of this attempt: since when, how often it was tried, and until when it rests."""

    since: float
    until: float = 0.0
    tries: int = 0


class Errands:
    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        clock: Clock,
        *,
        answered: Callable[[FlowCall, Reply], None],
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
        self._queue: deque[FlowCall] = deque()
        #: How many of each attempt have no answer yet, and the reports that wait for those.
        self._open: dict[AttemptRef, int] = {}
        self._held: dict[AttemptRef, Report] = {}
        self._arrived = threading.Event()
        self._most = BATCH
        #: Of this thread alone: what a tick is about and has no answer yet.
        self._chosen: dict[tuple[AttemptRef, int], FlowCall] = {}
        #: How often an errand failed all by itself while the store answered others.
        self._doubts: dict[tuple[AttemptRef, int], int] = {}
        self._troubles: dict[AttemptRef, _Trouble] = {}

    # --- from the supervisor's thread ---------------------------------------------------------------------------
    def take(self, errand: FlowCall) -> None:
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

    def wake(self) -> None:
        """End its rest early."""
        self._arrived.set()

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        if (rest := self._until_work()) > 0:
            self._clock.wait(self._arrived, rest)
        self._arrived.clear()
        self._choose()
        try:
            chosen = tuple(self._chosen.values())
            self._record([errand for errand in chosen if isinstance(errand.question, RecordStep)])
            for errand in chosen:
                if not isinstance(errand.question, RecordStep) and not self._rests(errand.ref):
                    self._carry_out(errand)
        finally:
            self._put_back()
        return 0.0

    def _until_work(self) -> float:
        with self._lock:
            waiting = {errand.ref for errand in self._queue}
        now = self._clock.boot()
        due = [self._troubles[ref].until if ref in self._troubles else now for ref in waiting]
        return max(0.0, min([*due, now + _REST]) - now)

    def _rests(self, ref: AttemptRef) -> bool:
        return ref in self._troubles and self._troubles[ref].until > self._clock.boot()

    def _choose(self) -> None:
        """What this tick is about. Nobody waits for an errand of an attempt that is not ours any more, nor for one
        that rests."""
        steps = others = size = 0
        resting: list[FlowCall] = []
        while steps < self._most and others < CALLS and size < MOST_BYTES:
            with self._lock:
                if not self._queue:
                    break
                errand = self._queue.popleft()
            if self._rests(errand.ref) and self._ledger.is_ours(errand.ref):
                resting.append(errand)
                continue
            self._chosen[errand.ref, errand.serial] = errand
            if not self._ledger.is_ours(errand.ref):
                self._close(errand)
            elif isinstance(errand.question, RecordStep):
                steps += 1
                size += len(errand.question.result)
            else:
                others += 1
        if resting:
            with self._lock:
                self._queue.extendleft(reversed(resting))

    def _record(self, errands: Sequence[FlowCall]) -> None:
        """Many at once; by attempts, and those one by one, if something is refused: the others have nothing to do
        with that."""
        if not errands:
            return
        try:
            verdicts = self._store.record_steps([_step(errand) for errand in errands])
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreBusy):
                self._most = max(1, self._most // 4)  # a batch that a slow store cannot take in time would never land
                if len(errands) == 1:
                    self._doubt(errands[0], error)
                raise
            self._record_apart(errands, error)
            return
        self._most = min(BATCH, 2 * self._most)
        for errand, verdict in zip(errands, verdicts, strict=True):
            if verdict is not Verdict.BUSY:
                self._finish(errand, Fenced() if verdict is Verdict.FENCED else Done())
            elif not self._rests(errand.ref):
                self._rest(errand, StoreBusy(HELD))

    def _record_apart(self, errands: Sequence[FlowCall], error: Exception) -> None:
        by_attempt: dict[AttemptRef, list[FlowCall]] = {}
        for errand in errands:
            by_attempt.setdefault(errand.ref, []).append(errand)
        if len(by_attempt) > 1:
            for some in by_attempt.values():
                self._record(some)
        elif isinstance(error, StoreBusy):
            self._rest(errands[0], error)
        elif len(errands) > 1:
            for errand in errands:
                self._record([errand])
        else:
            self._finish(errands[0], _refusal(error))

    def _carry_out(self, errand: FlowCall) -> None:
        try:
            answer = self._ask(errand)
        except StoreBusy as error:
            self._rest(errand, error)
        except StoreError as error:
            self._doubt(errand, error)
            raise
        except Exception as error:
            self._finish(errand, _refusal(error))
        else:
            self._finish(errand, Fenced() if answer is None else answer)

    def _rest(self, errand: FlowCall, error: StoreBusy) -> None:
        """All of its attempt: an errand must not overtake one that came before it. The handler is told in the end, if
        others can be written: a store that takes nothing from anybody is waited for, like one that is away."""
        now = self._clock.boot()
        trouble = self._troubles.setdefault(errand.ref, _Trouble(now))
        if now - trouble.since >= _PATIENCE and self._store_answers():
            self._finish(errand, _refusal(error))
            return
        trouble.until = now + min(_LONG_REST, _SHORT_REST * 2.0**trouble.tries)
        trouble.tries += 1

    def _ask(self, errand: FlowCall) -> Reply | None:
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
            case SpawnMessage(name=name, ordinal=ordinal, job=job, on_end=on_end):
                child = store.spawn(NewChild(ref, name, ordinal, job, on_end))
                return None if child is None else ChildAnswer(child)
            case GatherMessage(children=children, release_target=release_target):
                return GatherAnswer(store.gather(ref, children, release_target))
            case question:
                raise TypeError(f"no errand: {type(question).__name__}")

    def _finish(self, errand: FlowCall, answer: Reply) -> None:
        self._answered(errand, answer)
        if isinstance(answer, Fenced):
            self._revoked(errand.ref)
        self._close(errand)

    def _close(self, errand: FlowCall) -> None:
        """It is under way no more; with the last of its attempt a report that waited for them goes on."""
        self._troubles.pop(errand.ref, None)
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
        attempts that have ended: an end does not wait for a store that is away. It does for a row that somebody
        holds: nobody could write it meanwhile."""
        if not self._chosen:
            return
        with self._lock:
            self._queue.extendleft(reversed(self._chosen.values()))
            ended = {ref for ref in self._held if ref not in self._troubles}
            dropped = [errand for errand in self._queue if errand.ref in ended]
            if dropped:
                self._queue = deque(errand for errand in self._queue if errand.ref not in ended)
        self._chosen.clear()
        for errand in dropped:
            self._close(errand)

    def _doubt(self, errand: FlowCall, error: StoreError) -> None:
        """It failed all by itself. If the store answers others, it is this errand that no call can carry: its handler
        is told in the end, and those behind it get their turn."""
        if not self._store_answers():
            return
        key = (errand.ref, errand.serial)
        self._doubts[key] = self._doubts.get(key, 0) + 1
        if self._doubts[key] >= _TRIES:
            self._finish(errand, _refusal(error))

    def _store_answers(self) -> bool:
        try:
            self._store.probe()
        except StoreError:
            return False
        return True


def _step(errand: FlowCall) -> NewStep:
    question = errand.question
    assert isinstance(question, RecordStep)
    return NewStep(errand.ref, question.name, question.ordinal, question.result, question.ms)


def _refusal(error: Exception) -> RefusedMessage:
    if not isinstance(error, UnstuckError):
        logging.getLogger("unstuck").error("an errand failed", exc_info=error)
        return RefusedMessage(UnstuckError.__name__, clean_text(repr(error), _MAX_MESSAGE))
    return RefusedMessage(type(error).__name__, clean_text(str(error), _MAX_MESSAGE))
