"""An executor's report -> settlement -> one transaction, many at a time.

Reports pile up while a settle is under way, so batches grow with the load and a lone report waits for nobody. A
report is kept until the database has answered: results that were finished while the store was away land when it is
back, if their token still holds. What a handler said goes before the report that ends it.

A report that the store could not write although it wrote others is set aside: it stays in these hands, with its
result, for as long as the fence holds, is tried again with growing pauses, and is entered into the quarantine, where
people see what keeps its job RUNNING. Nobody else waits for it. Where not even that can be written, the worker's beat
tells it (`troubles`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, OutcomeUnknown, SchemaMismatch, StoreError, StoreUnavailable
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Returned
from unstuck.model.standing import settle_of
from unstuck.model.trouble import Trouble
from unstuck.store.port import HELD, AttemptOutput, Report, Settled, Store, Verdict
from unstuck.telemetry import emit, wants_every_job
from unstuck.worker.ledger import Ledger

BATCH = 400
_REST = 1.0
#: How long a busy settler waits for company: a commit costs more than this.
_COALESCE = 0.003
_COMPANY = 100
_TRIES = 3
#: How soon what was set aside is tried again: at first, and at the longest.
_SOON = 0.02
_LATE = 2.0
#: Held for so long it is worth a word to people; what the database refuses is at once.
_WORTH_SAYING = 1.0
#: So many that could not be entered into the quarantine are told one by one.
_MOST_TOLD = 5
#: Of these no report is to blame.
_AWAY = (StoreUnavailable, OutcomeUnknown, SchemaMismatch)
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
        self, store: Store, worker: int, ledger: Ledger, clock: Clock, *, settled: Callable[[list[Settled]], None]
    ) -> None:
        self._store = store
        self._worker = worker
        self._ledger = ledger
        self._clock = clock
        self._settled = settled
        self._lock = threading.Lock()
        self._reports: deque[Report] = deque()
        #: What handlers said since the last time: outputs joined, progress replaced.
        self._remarks: dict[AttemptRef, AttemptOutput] = {}
        #: How many characters of their outputs are stored for certain.
        self._stored: dict[AttemptRef, int] = {}
        self._lifts: list[int] = []
        self._arrived = threading.Event()
        self._was_busy = False
        self._most = BATCH
        #: How often a report failed all by itself while the store answered others.
        self._doubts: dict[AttemptRef, int] = {}
        #: Of this thread alone. What could not be written; when to lift and to say again what could not be, and how
        #: often that was tried.
        self._aside: dict[AttemptRef, _Aside] = {}
        self._lift_at: dict[int, tuple[float, int]] = {}
        self._say_at: dict[AttemptRef, tuple[float, int]] = {}

    # --- from the supervisor's thread ---------------------------------------------------------------------------
    def report(self, reports: Iterable[Report]) -> None:
        with self._lock:
            self._reports.extend(reports)
        self._arrived.set()

    def say(self, ref: AttemptRef, kind: str, text: str) -> None:
        said = AttemptOutput(ref, progress=text) if kind == "progress" else AttemptOutput(ref, output=text)
        with self._lock:
            self._remarks[ref] = _joined(self._remarks.get(ref), said)
        self._arrived.set()

    def lift(self, job: int) -> None:
        """The process of a stuck attempt is gone: its hold may go, once its verdict is written."""
        with self._lock:
            self._lifts.append(job)
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
        elif self._was_busy and len(self._reports) < _COMPANY:
            self._clock.wait(threading.Event(), _COALESCE)
        self._arrived.clear()
        return self._until_work() <= 0

    def _until_work(self) -> float:
        """How long there is nothing to do but wait; 0: there is."""
        with self._lock:
            if self._reports or any(ref not in self._say_at for ref in self._remarks):
                return 0.0
            ripe = [self._lift_at.get(job, (0.0, 0))[0] for job in self._ripe()]
            said = [self._say_at[ref][0] for ref in self._remarks]
        now = self._clock.boot()
        due = [*ripe, *said, *(aside.due_at for aside in self._aside.values()), now + _REST]
        return max(0.0, min(due) - now)

    def _flush(self) -> None:
        """What was said up to now, then the reports that were there by now: a handler that never stops talking must
        not keep others from ending, and what it said is stored before the report that ends it."""
        self._was_busy = True
        with self._lock:
            batch = [self._reports[i] for i in range(min(self._most, len(self._reports)))]
            said = self._take_said()
        self._write_remarks(said)
        if batch:
            self._settle(batch)
        self._settle_aside()
        self._lift_holds()

    # --- what handlers said -------------------------------------------------------------------------------------
    def _take_said(self) -> list[AttemptOutput]:
        """All but what could not be written a moment ago."""
        now = self._clock.boot()
        ready = [ref for ref in self._remarks if self._say_at.get(ref, (0.0, 0))[0] <= now]
        return [self._remarks.pop(ref) for ref in ready]

    def _write_remarks(self, said: list[AttemptOutput]) -> None:
        most = self._most
        for start in range(0, len(said), most):
            some = said[start : start + most]
            try:
                verdicts = self._store.keep_output(
                    [replace(remark, at=self._stored.get(remark.ref, 0)) for remark in some]
                )
            except Exception:
                self._keep_said(said[start:])
                raise
            for remark, verdict in zip(some, verdicts, strict=True):
                if verdict is Verdict.BUSY:
                    self._say_again(remark)
                else:
                    self._stored[remark.ref] = self._stored.get(remark.ref, 0) + len(remark.output or "")
                    self._say_at.pop(remark.ref, None)

    def _say_again(self, remark: AttemptOutput) -> None:
        """Later. But what a handler said must not keep its end from being written: with that it is given up."""
        _, tries = self._say_at.get(remark.ref, (0.0, 0))
        self._say_at[remark.ref] = self._clock.boot() + _pause(tries), tries + 1
        self._keep_said([remark])

    def _keep_said(self, said: Sequence[AttemptOutput]) -> None:
        with self._lock:
            for remark in said:
                self._remarks[remark.ref] = _joined(remark, self._remarks.get(remark.ref))

    def _still_talks(self, ref: AttemptRef) -> bool:
        """Whether something that it said is to be written before its end. Not for ever."""
        if ref not in self._say_at:
            return False
        if self._say_at[ref][1] < _TRIES:
            return True
        with self._lock:
            self._remarks.pop(ref, None)
        del self._say_at[ref]
        emit("remark_lost", level=logging.WARNING, job=ref.job, token=ref.token)
        return False

    # --- reports ------------------------------------------------------------------------------------------------
    def _settle(self, batch: list[Report]) -> None:
        silent = [report for report in batch if not self._still_talks(report.ref)]
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
        for report in batch:
            if report.ref in self._say_at:
                self._set_aside(report, "")
        self._take_answers({report.ref: report for report in reversed(silent)}, answers)

    def _settle_aside(self) -> None:
        """Those whose time has come, apart from all others."""
        now = self._clock.boot()
        due = [aside for aside in self._aside.values() if aside.due_at <= now][:BATCH]
        some: dict[AttemptRef, Report] = {}
        for aside in due:
            ref = aside.report.ref
            if self._still_talks(ref):
                aside.due_at = self._say_at[ref][0]
            else:
                some[ref] = aside.report
        if not some:
            return
        self._take_answers(some, self._without_output(some, self._ask(some.values())))

    def _ask(self, reports: Iterable[Report]) -> list[Settled]:
        reports = list(reports)
        try:
            return self._store.settle(self._worker, reports)
        except _AWAY:
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
            and self._aside[answer.ref].tries >= _TRIES
        ]
        second = {answer.ref: answer for answer in self._ask(bare)} if bare else {}
        for answer in second.values():
            if answer.verdict is Verdict.DONE:
                emit("remark_lost", level=logging.WARNING, job=answer.ref.job, token=answer.ref.token)
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
        self._end(final)
        if refused:
            self._record(refused)

    def _end(self, final: list[Settled]) -> None:
        """The database has the last word about these."""
        with self._lock:
            for answer in final:
                self._doubts.pop(answer.ref, None)
                self._stored.pop(answer.ref, None)
        if wants_every_job():
            self._tell(final)
        self._ledger.settled(answer.ref for answer in final)
        for answer in final:
            if answer.verdict is Verdict.FENCED:
                emit("fenced", job=answer.ref.job, token=answer.ref.token)
        if final:
            self._settled(final)
        for answer in final:
            aside = self._aside.pop(answer.ref, None)
            if aside is not None and aside.is_recorded:
                self._strike(answer.ref.job)

    def _tell(self, final: list[Settled]) -> None:
        now = self._clock.boot()
        for answer in final:
            if answer.state is not None and (holding := self._ledger.settling(answer.ref)) is not None:
                job, began = holding.job, holding.started_at
                took = "" if began is None else f" after {now - began:.3g} s"
                emit(
                    "job_ended",
                    level=logging.DEBUG,
                    job=job.id,
                    workflow=job.workflow,
                    state=str(answer.state),
                    took=took,
                )

    # --- what cannot be written ---------------------------------------------------------------------------------
    def _set_aside(self, report: Report, problem: str) -> _Aside:
        now = self._clock.boot()
        aside = self._aside.get(report.ref)
        if aside is None:
            self._aside[report.ref] = aside = _Aside(report, now, now + _SOON)
        elif problem:
            aside.due_at = now + _pause(aside.tries)
            aside.tries += 1
        else:
            aside.due_at = now + _SOON  # nobody got to it
        return aside

    def _is_worth_saying(self, aside: _Aside, problem: str) -> bool:
        if not problem:
            return False
        return problem != HELD or self._clock.boot() - aside.since >= _WORTH_SAYING

    def _say_set_aside(self, aside: _Aside, problem: str) -> None:
        """Once: a warning every two seconds tells nobody more."""
        if not aside.is_recorded:
            ref = aside.report.ref
            emit("report_set_aside", level=logging.WARNING, job=ref.job, token=ref.token, problem=problem)
        aside.is_recorded = True

    def _record(self, refused: dict[int, str]) -> None:
        """For people: the reports are safe here whether or not this can be written."""
        is_told = True
        try:
            self._store.quarantine("settle", refused, by=f"worker {self._worker}")
        except Exception as error:
            is_told = False
            emit("quarantine_failed", level=logging.WARNING, jobs=len(refused), error=str(error))
        for ref, aside in self._aside.items():
            if ref.job in refused:
                aside.untold = "" if is_told else refused[ref.job]

    def _strike(self, job: int) -> None:
        """What is left there by mistake goes with a sweep."""
        try:
            self._store.leave_quarantine("settle", job)
        except Exception as error:
            emit("quarantine_failed", level=logging.WARNING, job=job, error=str(error))

    def _doubt(self, report: Report, error: Exception) -> None:
        """It failed all by itself. If the store answers others, it is this report that no call can carry: it must not
        keep those behind it waiting. A large result is given up in the end, rather than its job left RUNNING."""
        try:
            self._store.probe()
        except StoreError:
            return
        with self._lock:
            self._reports.remove(report)
        if not isinstance(error, _AWAY):
            self._take_answers({report.ref: report}, [Settled(report.ref, Verdict.BUSY, problem=repr(error))])
            return
        with self._lock:
            self._doubts[report.ref] = self._doubts.get(report.ref, 0) + 1
            if self._doubts[report.ref] >= _TRIES and _is_large(report.outcome):
                report = replace(report, outcome=_UNSTORABLE, output=None)
            self._reports.append(report)

    # --- holds --------------------------------------------------------------------------------------------------
    def _lift_holds(self) -> None:
        """One that cannot be lifted now keeps no other from it."""
        now = self._clock.boot()
        with self._lock:
            ripe = self._ripe()
        for job in ripe:
            due_at, tries = self._lift_at.get(job, (0.0, 0))
            if due_at > now:
                continue
            try:
                self._store.lift_body_mark(self._worker, job)
            except _AWAY:
                raise
            except Exception as error:
                self._lift_at[job] = self._clock.boot() + _pause(tries), tries + 1
                emit("hold_not_lifted", level=logging.WARNING, job=job, error=str(error))
                continue
            self._lift_at.pop(job, None)
            with self._lock:
                self._lifts.remove(job)

    def _ripe(self) -> list[int]:
        """A hold is written by its verdict: the lift must not come before it."""
        if not self._lifts:
            return []
        unwritten = {report.ref.job for report in self._reports} | {ref.job for ref in self._aside}
        return [job for job in self._lifts if job not in unwritten]


def _pause(tries: int) -> float:
    return min(_LATE, _SOON * 2.0 ** min(tries, 20))


def _is_large(outcome: Outcome) -> bool:
    return isinstance(outcome, Returned) and len(outcome.result or "") >= _LARGE


def _joined(earlier: AttemptOutput | None, later: AttemptOutput | None) -> AttemptOutput:
    """Both, as one: no chunk of output is lost, the last progress counts."""
    if earlier is None or later is None:
        either = earlier or later
        assert either is not None
        return either
    output = (
        None if earlier.output is None and later.output is None else (earlier.output or "") + (later.output or "")
    )
    return AttemptOutput(earlier.ref, output, earlier.progress if later.progress is None else later.progress)
