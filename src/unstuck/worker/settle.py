"""An executor's report -> settlement -> one transaction, many at a time.

Reports pile up while a settle is under way, so batches grow with the load and a lone report waits for nobody. A
report is kept until the database has answered: results that were finished while the store was away land when it is
back, if their token still holds. What a handler said goes before the report that ends it.

A report that the store could not write although it wrote others is set aside: the settler keeps it, with its
result, for as long as the fence holds, tries it again with growing pauses, and enters it into the quarantine, where
people see what keeps its job RUNNING. No other report waits for it. Where not even that can be written, the worker's
beat tells it (`troubles`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, StoreError, StoreLocked
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Returned
from unstuck.model.trouble import Trouble
from unstuck.model.why.facts import settle_of
from unstuck.records import dataclass
from unstuck.store.port import HELD, Report, Settled, Verdict, WorkerPort
from unstuck.telemetry import emit, emit_jobs, wants_jobs
from unstuck.worker.body_marks import BodyMarkLifter
from unstuck.worker.handler_output import HandlerOutputWriter
from unstuck.worker.ledger import HeldAttempt, Ledger
from unstuck.worker.write_retries import SOON, STORE_AWAY, TRIES, pause_after

BATCH = 400
_REST = 1.0
#: How long a busy settler waits for more reports: a commit costs more than this.
_COALESCE = 0.003
_MANY = 100
#: Held for so long it is worth a word to people; what the database refuses is at once.
_WORTH_SAYING = 1.0
#: So many that could not be entered into the quarantine are told one by one.
_MOST_TOLD = 5
#: A result below this is never what a store call cannot carry.
_LARGE = 64 << 10
_UNSTORABLE = Raised(
    ErrorInfo(ErrorType.RESULT_NOT_STORABLE, "the database could not take the result within one store call"),
    retry=False,
)


class NotWritten(Exception):
    """The store refuses the end of a job, and to have it in the quarantine."""


@dataclass(slots=True)
class _Aside:
    """A report that could not be written, since when, and when it is tried again."""

    report: Report
    since: float
    due_at: float
    tries: int = 1
    is_recorded: bool = False
    #: What the store said, where it could not be entered into the quarantine.
    untold: str = ""


class Settler:
    def __init__(
        self,
        store: WorkerPort,
        worker: int,
        ledger: Ledger,
        clock: Clock,
        *,
        settled: Callable[[list[Settled]], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._ledger = ledger
        self._clock = clock
        self._settled = settled
        self._lock = threading.Lock()
        self._reports: deque[Report] = deque()
        self._output = HandlerOutputWriter(store, clock)
        self._body_marks = BodyMarkLifter(store, worker, clock, self._unwritten)
        self._arrived = threading.Event()
        self._was_busy = False
        self._most = BATCH
        #: How often a report failed all by itself while the store answered others.
        self._doubts: dict[AttemptRef, int] = {}
        #: Reports that could not be written. Of this thread alone.
        self._aside: dict[AttemptRef, _Aside] = {}

    # --- from the supervisor's thread ---------------------------------------------------------------------------
    def report(self, reports: Iterable[Report]) -> None:
        with self._lock:
            self._reports.extend(reports)
        self._arrived.set()

    def say(self, ref: AttemptRef, kind: str, text: str) -> None:
        self._output.add(ref, kind, text)
        self._arrived.set()

    def body_gone(self, job: int) -> None:
        """The process of a stuck attempt is gone: its body mark may go, once its verdict is written."""
        self._body_marks.add(job)
        self._arrived.set()

    def wake(self) -> None:
        """End its rest early."""
        self._arrived.set()

    @property
    def set_aside(self) -> int:
        """How many reports could not be written although the store answered others."""
        return len(self._aside)

    @property
    def troubles(self) -> dict[str, Trouble]:
        """Of these only this worker knows, the oldest first. From any thread."""
        untold = [aside for aside in list(self._aside.values()) if aside.untold][:_MOST_TOLD]
        return {
            settle_of(aside.report.ref.job): Trouble(
                NotWritten(aside.untold), aside.since, aside.tries, lasting_since=aside.since
            )
            for aside in untold
        }

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        if not self._wait_for_reports():
            return 0.0
        try:
            self._flush()
        except Exception:
            # Kept, and tried again for as long as this worker lives: the fence decides whether it still counts.
            # The loop rests a little, and no longer than that: once the store is back, recovery waits but a beat.
            self._most = max(1, self._most // 4)  # a batch that a slow store cannot take in time would never land
            raise
        return 0.0

    def _wait_for_reports(self) -> bool:
        rest = self._until_work()
        if rest > 0:
            self._was_busy = False
            self._clock.wait(self._arrived, rest)
        elif self._was_busy and len(self._reports) < _MANY:
            self._clock.wait(threading.Event(), _COALESCE)
        self._arrived.clear()
        return self._until_work() <= 0

    def _until_work(self) -> float:
        """How long there is nothing to do but wait; 0: there is."""
        with self._lock:
            if self._reports:
                return 0.0
        now = self._clock.boot()
        asides = (aside.due_at for aside in self._aside.values())
        due = [*self._body_marks.due(), *self._output.due(), *asides, now + _REST]
        return max(0.0, min(due) - now)

    def _unwritten(self) -> set[int]:
        """Jobs whose reports are not written yet."""
        with self._lock:
            return {report.ref.job for report in self._reports} | {ref.job for ref in self._aside}

    def _flush(self) -> None:
        """What was said up to now, then the reports that were there by now: a handler that never stops talking must
        not keep others from ending, and what it said is stored before the report that ends it."""
        self._was_busy = True
        with self._lock:
            batch = [self._reports[i] for i in range(min(self._most, len(self._reports)))]
        self._output.write(self._most)
        if batch:
            self._settle(batch)
        self._settle_aside()
        self._body_marks.lift()

    # --- reports ------------------------------------------------------------------------------------------------
    def _settle(self, batch: list[Report]) -> None:
        is_late = self._output.is_late
        silent = [report for report in batch if not self._output.is_owed(report.ref)] if is_late else batch
        try:
            answers = self._store.settle(self._worker, silent) if silent else []
        except Exception as error:
            if len(silent) == 1:
                self._doubt(silent[0], error)
            raise
        with self._lock:
            for _ in batch:
                self._reports.popleft()
        self._most = min(BATCH, 2 * self._most)
        if is_late:
            for report in batch:
                if self._output.next_try(report.ref) is not None:
                    self._set_aside(report, "")
        self._take_answers({report.ref: report for report in reversed(silent)}, answers)

    def _settle_aside(self) -> None:
        """Those whose time has come, apart from all others."""
        now = self._clock.boot()
        due = [aside for aside in self._aside.values() if aside.due_at <= now][:BATCH]
        some: dict[AttemptRef, Report] = {}
        for aside in due:
            ref = aside.report.ref
            if self._output.is_owed(ref):
                aside.due_at = self._output.next_try(ref) or aside.due_at
            else:
                some[ref] = aside.report
        large = [report for report in some.values() if _is_large(report.outcome)]
        for report in large:
            del some[report.ref]
        if some:
            self._take_answers(some, self._without_output(some, self._ask(some.values())))
        for report in large:
            self._settle_large(report)

    def _settle_large(self, report: Report) -> None:
        """By itself: that it fails says nothing about others, so nothing rests because of it."""
        try:
            answers = self._ask([report])
        except Exception as error:
            self._doubt(report, error)
            if (aside := self._aside.get(report.ref)) is not None:
                emit("report_repeated", job=self._id_of(report.ref), token=report.ref.token, error=str(error))
                aside.due_at = self._clock.boot() + pause_after(aside.tries)
                aside.tries += 1
            return
        self._take_answers({report.ref: report}, self._without_output({report.ref: report}, answers))

    def _ask(self, reports: Iterable[Report]) -> list[Settled]:
        reports = list(reports)
        try:
            return self._store.settle(self._worker, reports)
        except STORE_AWAY:
            raise
        except Exception as error:
            return [Settled(report.ref, Verdict.BUSY, problem=repr(error)) for report in reports]

    def _without_output(self, reports: dict[AttemptRef, Report], answers: Sequence[Settled]) -> list[Settled]:
        """What a handler printed last comes with its report. It is given up where that is all that keeps it."""
        bare = [
            replace(reports[answer.ref], output=None)
            for answer in answers
            if answer.verdict is Verdict.BUSY
            and answer.problem not in ("", HELD)
            and reports[answer.ref].output
            and self._aside[answer.ref].tries >= TRIES
        ]
        second = {answer.ref: answer for answer in self._ask(bare)} if bare else {}
        for answer in second.values():
            if answer.verdict is Verdict.DONE:
                emit("remark_lost", level=logging.WARNING, job=self._id_of(answer.ref), token=answer.ref.token)
        return [second.get(answer.ref, answer) for answer in answers]

    def _take_answers(self, reports: dict[AttemptRef, Report], answers: Sequence[Settled]) -> None:
        final = [answer for answer in answers if answer.verdict is not Verdict.BUSY]
        refused: dict[int, str] = {}
        for answer in answers:
            if answer.verdict is Verdict.BUSY:
                aside = self._set_aside(reports[answer.ref], answer.problem)
                if self._is_worth_saying(aside, answer.problem):
                    refused[answer.ref.job] = answer.problem
                    self._say_set_aside(aside, answer.problem)
        self._end(final, reports)
        if refused:
            self._record(refused)

    def _end(self, final: list[Settled], reports: Mapping[AttemptRef, Report]) -> None:
        """The database has the last word about these."""
        refs = [answer.ref for answer in final]
        if self._doubts:
            with self._lock:
                for ref in refs:
                    self._doubts.pop(ref, None)
        self._output.forget(refs)
        if wants_jobs():
            emit_jobs("job_ended", self._untold(final), lambda answer: self._told_of(answer, reports[answer.ref]))
        for answer in final:
            if answer.verdict is Verdict.FENCED:
                emit("fenced", job=self._id_of(answer.ref), token=answer.ref.token)
        self._ledger.settled(refs)
        if final:
            self._settled(final)
        if self._aside:
            for ref in refs:
                aside = self._aside.pop(ref, None)
                if aside is not None and aside.is_recorded:
                    self._leave_quarantine(ref.job)

    def _untold(self, final: Iterable[Settled]) -> list[Settled]:
        """Each end once: of an attempt that was reported twice the store says each time how it ended."""
        ended = {answer.ref: answer for answer in final if answer.state is not None}
        return [answer for ref, answer in ended.items() if self._ledger.settling(ref) is not None]

    def _id_of(self, ref: AttemptRef) -> str:
        """For the log: people know a job by its id."""
        holding = self._ledger.settling(ref)
        return f"number {ref.job}" if holding is None else holding.job.id

    def _told_of(self, answer: Settled, report: Report) -> dict[str, object]:
        """How an attempt ended, for the log; `state` is where its job went."""
        holding = self._ledger.settling(answer.ref)
        error: ErrorInfo | None = getattr(report.outcome, "error", None)
        return {
            **(holding.facts if holding else {"job": self._id_of(answer.ref), "workflow": None}),
            "state": str(answer.state),
            "duration_ms": report.duration_ms,
            "error_type": error.type if error else None,
            "error_message": error.message if error else None,
            **_obedience(holding, self._clock.boot()),
        }

    # --- what cannot be written ---------------------------------------------------------------------------------
    def _set_aside(self, report: Report, problem: str) -> _Aside:
        now = self._clock.boot()
        aside = self._aside.get(report.ref)
        if aside is None:
            self._aside[report.ref] = aside = _Aside(report, now, now + SOON)
        elif problem:
            aside.due_at = now + pause_after(aside.tries)
            aside.tries += 1
        else:
            aside.due_at = now + SOON  # nobody got to it
        return aside

    def _is_worth_saying(self, aside: _Aside, problem: str) -> bool:
        if not problem:
            return False
        return problem != HELD or self._clock.boot() - aside.since >= _WORTH_SAYING

    def _say_set_aside(self, aside: _Aside, problem: str) -> None:
        """Once: a warning every two seconds tells nobody more."""
        if not aside.is_recorded:
            ref = aside.report.ref
            emit("report_set_aside", level=logging.WARNING, job=self._id_of(ref), token=ref.token, problem=problem)
        aside.is_recorded = True

    def _record(self, refused: dict[int, str]) -> None:
        """For people: the reports are safe here whether or not this can be written."""
        try:
            untold = self._store.quarantine("settle", refused, by=f"worker {self._worker}")
        except Exception as error:
            untold = frozenset(refused)
            emit("quarantine_failed", level=logging.WARNING, jobs=len(refused), error=str(error))
        for ref, aside in self._aside.items():
            if ref.job in refused:
                aside.untold = refused[ref.job] if ref.job in untold else ""

    def _leave_quarantine(self, job: int) -> None:
        """What is left there by mistake goes with a sweep."""
        try:
            self._store.leave_quarantine("settle", job)
        except Exception as error:
            emit("quarantine_failed", level=logging.WARNING, job=job, error=str(error))

    def _doubt(self, report: Report, error: Exception) -> None:
        """It failed all by itself. If the store answers others, it is this report that no call can carry: it must not
        keep those behind it waiting. A large result is given up in the end, rather than its job left RUNNING."""
        if isinstance(error, StoreLocked):
            return  # it may be over by now, and says nothing about this one
        try:
            self._store.probe()
        except StoreError:
            return
        with self._lock:
            if self._aside.pop(report.ref, None) is None:
                self._reports.remove(report)
        if not isinstance(error, STORE_AWAY):
            self._take_answers({report.ref: report}, [Settled(report.ref, Verdict.BUSY, problem=repr(error))])
            return
        with self._lock:
            self._doubts[report.ref] = self._doubts.get(report.ref, 0) + 1
            if self._doubts[report.ref] >= TRIES and _is_large(report.outcome):
                report = replace(report, outcome=_UNSTORABLE, output=None)
            self._reports.append(report)


def _is_large(outcome: Outcome) -> bool:
    return isinstance(outcome, Returned) and len(outcome.result or "") >= _LARGE


def _obedience(holding: HeldAttempt | None, now: float) -> dict[str, object]:
    """What it was asked, and how long it took from there to its end."""
    if holding is None or holding.asked is None or holding.told_at is None:
        return {}
    return {"request": str(holding.asked), "obeyed_in": round(now - holding.told_at, 3)}
