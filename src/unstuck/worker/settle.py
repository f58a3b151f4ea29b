"""An executor's report -> settlement -> one transaction, many at a time.

Reports pile up while a settle is under way, so batches grow with the load and a lone report waits for nobody. A
report is kept until the database has answered: results that were finished while the store was away land when it is
back, if their token still holds. What a handler said goes before the report that ends it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from unstuck.clock import Clock
from unstuck.model.errors import ErrorType, StoreError
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Returned
from unstuck.store.port import Remark, Report, Settled, Store, Verdict
from unstuck.telemetry import emit
from unstuck.worker.ledger import Ledger

BATCH = 400
_REST = 1.0
#: How long a busy settler waits for company: a commit costs more than this.
_COALESCE = 0.003
_COMPANY = 100
_TRIES = 3
#: A result below this is never what a store call cannot carry.
_LARGE = 64 << 10
_UNSTORABLE = Raised(
    ErrorInfo(ErrorType.RESULT_NOT_STORABLE, "the database could not take the result within one store call"),
    retry=False,
)


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
        self._remarks: dict[AttemptRef, Remark] = {}
        #: How many characters of their outputs are stored for certain.
        self._stored: dict[AttemptRef, int] = {}
        self._lifts: list[int] = []
        self._arrived = threading.Event()
        self._was_busy = False
        self._most = BATCH
        #: How often a report failed all by itself while the store answered others.
        self._doubts: dict[AttemptRef, int] = {}

    # --- from the supervisor's thread ---------------------------------------------------------------------------
    def report(self, reports: Iterable[Report]) -> None:
        with self._lock:
            self._reports.extend(reports)
        self._arrived.set()

    def say(self, ref: AttemptRef, kind: str, text: str) -> None:
        said = Remark(ref, progress=text) if kind == "progress" else Remark(ref, output=text)
        with self._lock:
            self._remarks[ref] = _joined(self._remarks.get(ref), said)
        self._arrived.set()

    def lift(self, job: int) -> None:
        """The process of a stuck attempt is gone: its hold may go, once its verdict is written."""
        with self._lock:
            self._lifts.append(job)
        self._arrived.set()

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        if not self._wait_for_reports():
            return 0.0
        try:
            self._flush()
        except StoreError:
            # Kept, and tried again for as long as this worker lives: the fence decides whether it still counts.
            # The loop rests a little, and no longer than that: once the store is back, recovery waits but a beat.
            self._most = max(1, self._most // 4)  # a batch that a slow store cannot take in time would never land
            raise
        return 0.0

    def _wait_for_reports(self) -> bool:
        if not self._has_work():
            self._was_busy = False
            self._clock.wait(self._arrived, _REST)
        elif self._was_busy and len(self._reports) < _COMPANY:
            self._clock.wait(threading.Event(), _COALESCE)
        self._arrived.clear()
        return self._has_work()

    def _has_work(self) -> bool:
        return bool(self._reports or self._lifts or self._remarks)

    def _flush(self) -> None:
        """What was said up to now, then the reports that were there by now: a handler that never stops talking must
        not keep others from ending, and what it said is stored before the report that ends it."""
        self._was_busy = True
        with self._lock:
            batch = [self._reports[i] for i in range(min(self._most, len(self._reports)))]
            said = list(self._remarks.values())
            self._remarks = {}
        self._write_remarks(said)
        if batch:
            self._settle(batch)
        self._lift_holds()

    def _write_remarks(self, said: list[Remark]) -> None:
        most = self._most
        for start in range(0, len(said), most):
            some = said[start : start + most]
            try:
                self._store.remark([replace(remark, at=self._stored.get(remark.ref, 0)) for remark in some])
            except StoreError:
                with self._lock:
                    for remark in said[start:]:
                        self._remarks[remark.ref] = _joined(remark, self._remarks.get(remark.ref))
                raise
            for remark in some:
                self._stored[remark.ref] = self._stored.get(remark.ref, 0) + len(remark.output or "")

    def _settle(self, batch: list[Report]) -> None:
        try:
            answers = self._store.settle(self._worker, batch)
        except StoreError:
            if len(batch) == 1:
                self._doubt_first()
            raise
        with self._lock:
            for report in batch:
                self._reports.popleft()
                self._doubts.pop(report.ref, None)
                self._stored.pop(report.ref, None)
        self._most = min(BATCH, 2 * self._most)
        self._ledger.settled(report.ref for report in batch)
        for answer in answers:
            if answer.verdict is Verdict.FENCED:
                emit("fenced", job=answer.ref.job, token=answer.ref.token)
        self._settled(answers)

    def _doubt_first(self) -> None:
        """It failed all by itself. If the store answers others, it is this report that no call can carry: it must not
        keep those behind it waiting. A large result is given up in the end, rather than its job left RUNNING."""
        try:
            self._store.probe()
        except StoreError:
            return
        with self._lock:
            first = self._reports.popleft()
            self._doubts[first.ref] = self._doubts.get(first.ref, 0) + 1
            if self._doubts[first.ref] >= _TRIES and _is_large(first.outcome):
                first = replace(first, outcome=_UNSTORABLE, output=None)
            self._reports.append(first)

    def _lift_holds(self) -> None:
        """A hold is written by its verdict: the lift must not come before it."""
        with self._lock:
            unwritten = {report.ref.job for report in self._reports}
            ripe = [job for job in self._lifts if job not in unwritten]
        for job in ripe:
            self._store.lift_hold(self._worker, job)
            with self._lock:
                self._lifts.remove(job)


def _is_large(outcome: Outcome) -> bool:
    return isinstance(outcome, Returned) and len(outcome.result or "") >= _LARGE


def _joined(earlier: Remark | None, later: Remark | None) -> Remark:
    """Both, as one: no chunk of output is lost, the last progress counts."""
    if earlier is None or later is None:
        either = earlier or later
        assert either is not None
        return either
    output = (
        None if earlier.output is None and later.output is None else (earlier.output or "") + (later.output or "")
    )
    return Remark(earlier.ref, output, earlier.progress if later.progress is None else later.progress)
