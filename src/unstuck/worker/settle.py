"""An executor's report -> settlement -> one transaction, many at a time.

Reports pile up while a settle is under way, so batches grow with the load and a lone report waits for nobody. A
report is kept until the database has answered: results that were finished while the store was away land when it is
back, if their token still holds. What a handler said goes before the report that ends it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from unstuck.clock import Clock
from unstuck.model.errors import StoreError
from unstuck.model.job import AttemptRef
from unstuck.store.port import Remark, Report, Settled, Store, Verdict
from unstuck.telemetry import emit
from unstuck.worker.ledger import Ledger

BATCH = 400
_REST = 1.0
#: How long a busy settler waits for company: a commit costs more than this.
_COALESCE = 0.003
_COMPANY = 100


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
        self._lifts: list[int] = []
        self._arrived = threading.Event()
        self._was_busy = False
        self._retries = 0
        self._most = BATCH

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
            self._retries += 1
            self._most = max(1, self._most // 4)  # a batch that a slow store cannot take in time would never land
            self._clock.wait(threading.Event(), min(_REST, 0.05 * 2 ** min(self._retries, 5)))
            raise
        self._retries = 0
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
        self._was_busy = True
        self._write_remarks()
        self._settle()
        self._lift_holds()

    def _write_remarks(self) -> None:
        """All of them: what a handler said must be stored before the report that ends it."""
        while said := self._take_remarks():
            try:
                self._store.remark(said)
            except StoreError:
                with self._lock:
                    for remark in said:
                        self._remarks[remark.ref] = _joined(remark, self._remarks.get(remark.ref))
                raise

    def _take_remarks(self) -> list[Remark]:
        with self._lock:
            return [self._remarks.pop(ref) for ref in list(self._remarks)[:BATCH]]

    def _settle(self) -> None:
        with self._lock:
            batch = [self._reports[i] for i in range(min(self._most, len(self._reports)))]
        if not batch:
            return
        answers = self._store.settle(self._worker, batch)
        with self._lock:
            for _ in batch:
                self._reports.popleft()
        self._most = min(BATCH, 2 * self._most)
        self._ledger.settled(report.ref for report in batch)
        for answer in answers:
            if answer.verdict is Verdict.FENCED:
                emit("fenced", job=answer.ref.job, token=answer.ref.token)
        self._settled(answers)

    def _lift_holds(self) -> None:
        with self._lock:
            lifts, self._lifts = self._lifts, []
        while lifts:
            try:
                self._store.lift_hold(lifts[0])
            except StoreError:
                with self._lock:
                    self._lifts[:0] = lifts
                raise
            lifts.pop(0)


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
