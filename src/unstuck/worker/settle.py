"""An executor's report -> settlement -> one transaction, many at a time.

Reports pile up while a settle is under way, so batches grow with the load and a lone report waits for nobody. A
report is kept until the database has answered: results that were finished while the store was away land when it is
back, if their token still holds. What a handler said goes before the report that ends it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unstuck.clock import Clock
from unstuck.model.errors import StoreError
from unstuck.model.job import AttemptRef
from unstuck.store.port import Report, Settled, Store, Verdict
from unstuck.telemetry import emit
from unstuck.worker.ledger import Ledger

BATCH = 400
_REST = 1.0
#: How long a busy settler waits for company: a commit costs more than this.
_COALESCE = 0.003
_COMPANY = 100


@dataclass(slots=True)
class Remarks:
    """What handlers said since the last settle: outputs joined, progress replaced."""

    output: dict[AttemptRef, list[str]] = field(default_factory=dict)
    progress: dict[AttemptRef, str] = field(default_factory=dict)


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
        self._remarks = Remarks()
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
        with self._lock:
            if kind == "progress":
                self._remarks.progress[ref] = text
            else:
                self._remarks.output.setdefault(ref, []).append(text)
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
        return bool(self._reports or self._lifts or self._remarks.output or self._remarks.progress)

    def _flush(self) -> None:
        self._was_busy = True
        self._write_remarks()
        self._settle()
        self._lift_holds()

    def _write_remarks(self) -> None:
        with self._lock:
            said, self._remarks = self._remarks, Remarks()
        try:
            while said.output:
                ref = next(iter(said.output))
                self._store.append_output(ref, "".join(said.output[ref]))
                del said.output[ref]
            while said.progress:
                ref = next(iter(said.progress))
                self._store.progress(ref, said.progress[ref])
                del said.progress[ref]
        except StoreError:
            self._keep(said)
            raise

    def _keep(self, said: Remarks) -> None:
        with self._lock:
            for ref, chunks in said.output.items():
                self._remarks.output[ref] = chunks + self._remarks.output.get(ref, [])
            for ref, value in said.progress.items():
                self._remarks.progress.setdefault(ref, value)

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
