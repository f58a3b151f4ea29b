"""Flow calls: what handlers ask of the database while they run. Their journal, finished steps, spending, partial
results, children.

On a thread of its own. Steps that were finished while a store call was under way are recorded together in the next.
A call is kept until the database has answered it, for as long as its attempt is ours: its handler sleeps, and a
request to stop wakes it. A report that ends an attempt goes behind the calls that were sent before it, so that what
a handler had finished is stored before it ends; but it never waits for a store that is away.

An attempt one of whose rows another session holds rests for a while, with all its calls in their order; those of
others go on. It is tried again, and after some time its handler gets the error. What the database refuses is answered
at once.
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
    GatherAnswer,
    GatherMessage,
    JournalPage,
    KeepPart,
    LoadJournal,
    Publish,
    RecordStep,
    RefusedMessage,
    Reply,
    SpawnMessage,
    Spend,
    SpentAnswer,
)
from unstuck.model.errors import StoreBusy, StoreError, UnstuckError
from unstuck.model.job import AttemptRef, NewJob, made
from unstuck.model.payload import clean_text
from unstuck.records import dataclass
from unstuck.store.port import HELD, NewChild, NewStep, Report, Verdict, WorkerPort
from unstuck.worker.ledger import Ledger
from unstuck.worker.processes import FlowCall

#: Steps of one store call, and other calls of one tick: between two ticks the watchdog sees a sign of life.
BATCH = 200
CALLS = 5
#: So many bytes of results go into one store call; a single one may be larger.
MOST_BYTES = 4 << 20
_REST = 1.0
_TRIES = 3
_MAX_MESSAGE = 8 << 10
#: An attempt whose row another session holds: its first rest, its longest, and when its handler is told.
_SHORT_REST = 0.02
_LONG_REST = 1.0
_PATIENCE = 15.0


def unsigned(job: NewJob) -> NewJob:
    """A child as its parent's handler asks for it, where nobody signs it here."""
    return made(job, "parent")


@dataclass(slots=True)
class _Trouble:
    """Another session holds a row of this attempt: since when, how often it was tried, and until when it rests."""

    since: float
    until: float = 0.0
    tries: int = 0


class FlowCallRunner:
    def __init__(
        self,
        store: WorkerPort,
        ledger: Ledger,
        clock: Clock,
        *,
        answered: Callable[[FlowCall, Reply], None],
        revoked: Callable[[AttemptRef], None],
        report: Callable[[list[Report]], None],
        sign: Callable[[NewJob], NewJob] = unsigned,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._answered = answered
        self._revoked = revoked
        self._report = report
        self._sign = sign
        self._lock = threading.Lock()
        self._queue: deque[FlowCall] = deque()
        #: How many of each attempt have no answer yet, and the reports that wait for those.
        self._open: dict[AttemptRef, int] = {}
        self._kept_back: dict[AttemptRef, Report] = {}
        self._arrived = threading.Event()
        self._most = BATCH
        #: Of this thread alone: what a tick is about and has no answer yet.
        self._chosen: dict[tuple[AttemptRef, int], FlowCall] = {}
        #: How often a call failed all by itself while the store answered others.
        self._doubts: dict[tuple[AttemptRef, int], int] = {}
        self._troubles: dict[AttemptRef, _Trouble] = {}

    # --- from the supervisor's thread ---------------------------------------------------------------------------
    def take(self, call: FlowCall) -> None:
        with self._lock:
            self._queue.append(call)
            self._open[call.ref] = self._open.get(call.ref, 0) + 1
        self._arrived.set()

    def keep_back(self, report: Report) -> bool:
        """Whether the report goes to the settler by way of here, behind what its handler had sent before."""
        if not self._open:
            return False
        with self._lock:
            if report.ref not in self._open:
                return False
            self._kept_back[report.ref] = report
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
            self._record([call for call in chosen if isinstance(call.question, RecordStep)])
            for call in chosen:
                if not isinstance(call.question, RecordStep) and not self._rests(call.ref):
                    self._carry_out(call)
        finally:
            self._put_back()
        return 0.0

    def _until_work(self) -> float:
        with self._lock:
            waiting = {call.ref for call in self._queue}
        now = self._clock.boot()
        due = [self._troubles[ref].until if ref in self._troubles else now for ref in waiting]
        return max(0.0, min([*due, now + _REST]) - now)

    def _rests(self, ref: AttemptRef) -> bool:
        return ref in self._troubles and self._troubles[ref].until > self._clock.boot()

    def _choose(self) -> None:
        """What this tick is about. Nobody waits for a call of an attempt that is not ours any more, nor for one
        that rests."""
        steps = others = size = 0
        resting: list[FlowCall] = []
        while steps < self._most and others < CALLS and size < MOST_BYTES:
            with self._lock:
                if not self._queue:
                    break
                call = self._queue.popleft()
            if self._rests(call.ref) and self._ledger.is_ours(call.ref):
                resting.append(call)
                continue
            self._chosen[call.ref, call.serial] = call
            if not self._ledger.is_ours(call.ref):
                self._close(call)
            elif isinstance(call.question, RecordStep):
                steps += 1
                size += len(call.question.result)
            else:
                others += 1
        if resting:
            with self._lock:
                self._queue.extendleft(reversed(resting))

    def _record(self, calls: Sequence[FlowCall]) -> None:
        """Many at once; by attempts, and those one by one, if something is refused: the others have nothing to do
        with that."""
        if not calls:
            return
        try:
            verdicts = self._store.record_steps([_step(call) for call in calls])
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreBusy):
                self._most = max(1, self._most // 4)  # a batch that a slow store cannot take in time would never land
                if len(calls) == 1:
                    self._doubt(calls[0], error)
                raise
            self._record_apart(calls, error)
            return
        self._most = min(BATCH, 2 * self._most)
        for call, verdict in zip(calls, verdicts, strict=True):
            if verdict is not Verdict.BUSY:
                self._finish(call, Fenced() if verdict is Verdict.FENCED else Done())
            elif not self._rests(call.ref):
                self._rest(call, StoreBusy(HELD))

    def _record_apart(self, calls: Sequence[FlowCall], error: Exception) -> None:
        by_attempt: dict[AttemptRef, list[FlowCall]] = {}
        for call in calls:
            by_attempt.setdefault(call.ref, []).append(call)
        if len(by_attempt) > 1:
            for some in by_attempt.values():
                self._record(some)
        elif isinstance(error, StoreBusy):
            self._rest(calls[0], error)
        elif len(calls) > 1:
            for call in calls:
                self._record([call])
        else:
            self._finish(calls[0], _refusal(error))

    def _carry_out(self, call: FlowCall) -> None:
        try:
            answer = self._ask(call)
        except StoreBusy as error:
            self._rest(call, error)
        except StoreError as error:
            self._doubt(call, error)
            raise
        except Exception as error:
            self._finish(call, _refusal(error))
        else:
            self._finish(call, Fenced() if answer is None else answer)

    def _rest(self, call: FlowCall, error: StoreBusy) -> None:
        """All of its attempt: a call must not overtake one that came before it. The handler is told in the end, if
        others can be written: a store that takes nothing from anybody is waited for, like one that is away."""
        now = self._clock.boot()
        trouble = self._troubles.setdefault(call.ref, _Trouble(now))
        if now - trouble.since >= _PATIENCE and self._store_answers():
            self._finish(call, _refusal(error))
            return
        trouble.until = now + min(_LONG_REST, _SHORT_REST * 2.0**trouble.tries)
        trouble.tries += 1

    def _ask(self, call: FlowCall) -> Reply | None:
        """None: fenced."""
        ref, store = call.ref, self._store
        match call.question:
            case LoadJournal(after=after):
                journal = store.journal(ref, after)
                return None if journal is None else JournalPage(journal)
            case Spend(amounts=amounts):
                spent = store.spend(ref, call.serial, amounts)
                return None if spent is None else SpentAnswer(spent)
            case KeepPart(name=name, value=value):
                verdict = store.keep_part(ref, call.serial, name, value)
                return None if verdict is Verdict.FENCED else Done()
            case Publish(place=place, publication=given):
                return None if store.publish_from(ref, place, given) is Verdict.FENCED else Done()
            case SpawnMessage(name=name, ordinal=ordinal, job=job, on_end=on_end):
                child = store.spawn(NewChild(ref, name, ordinal, self._sign(job), on_end))
                return None if child is None else ChildAnswer(child)
            case GatherMessage(children=children, release_target=release_target):
                ended = store.gather(ref, children, release_target)
                return None if ended == Verdict.FENCED else GatherAnswer(ended)
            case question:
                raise TypeError(f"no flow call: {type(question).__name__}")

    def _finish(self, call: FlowCall, answer: Reply) -> None:
        try:
            self._answered(call, answer)
        except Exception as error:  # an answer that cannot be sent: its handler must not wait for ever
            self._answered(call, _refusal(error))
        if isinstance(answer, Fenced):
            self._revoked(call.ref)
        self._close(call)

    def _close(self, call: FlowCall) -> None:
        """It is under way no more; with the last of its attempt a report that waited for them goes on."""
        self._troubles.pop(call.ref, None)
        self._chosen.pop((call.ref, call.serial), None)
        self._doubts.pop((call.ref, call.serial), None)
        with self._lock:
            left = self._open.pop(call.ref) - 1
            if left:
                self._open[call.ref] = left
                return
            report = self._kept_back.pop(call.ref, None)
        if report is not None:
            self._report([report])

    def _put_back(self) -> None:
        """What was not answered, in its order: spendings of an attempt must not overtake each other. Except those of
        attempts that have ended: an end does not wait for a store that is away. It does wait for a row that another
        session holds: the end could not be written either."""
        if not self._chosen:
            return
        with self._lock:
            self._queue.extendleft(reversed(self._chosen.values()))
            ended = {ref for ref in self._kept_back if ref not in self._troubles}
            dropped = [call for call in self._queue if call.ref in ended]
            if dropped:
                self._queue = deque(call for call in self._queue if call.ref not in ended)
        self._chosen.clear()
        for call in dropped:
            self._close(call)

    def _doubt(self, call: FlowCall, error: StoreError) -> None:
        """It failed all by itself. If the store answers others, no store call can carry this one: its handler
        is told in the end, and those behind it get their turn."""
        if not self._store_answers():
            return
        key = (call.ref, call.serial)
        self._doubts[key] = self._doubts.get(key, 0) + 1
        if self._doubts[key] >= _TRIES:
            self._finish(call, _refusal(error))

    def _store_answers(self) -> bool:
        try:
            self._store.probe()
        except StoreError:
            return False
        return True


def _step(call: FlowCall) -> NewStep:
    question = call.question
    assert isinstance(question, RecordStep)
    return NewStep(call.ref, question.name, question.ordinal, question.result, question.ms)


def _refusal(error: Exception) -> RefusedMessage:
    if not isinstance(error, UnstuckError):
        logging.getLogger("unstuck").error("a flow call failed", exc_info=error)
        return RefusedMessage(UnstuckError.__name__, clean_text(repr(error), _MAX_MESSAGE))
    return RefusedMessage(type(error).__name__, clean_text(str(error), _MAX_MESSAGE))
