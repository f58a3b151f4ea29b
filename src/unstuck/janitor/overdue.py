"""The backstop: attempts far past their limit or request, whose own supervisor did not judge them -> stuck."""

from __future__ import annotations

import logging

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Recovered, Store
from unstuck.telemetry import emit

BATCH = 500


class OverdueDuty:
    name = "overdue"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(BATCH)

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        moved = 0
        for convicted in budget.batches(self._batch, self._convict, len):
            moved += len(convicted)
            for job in convicted:
                emit("overdue", level=logging.WARNING, job=job.id, worker=job.worker, state=job.state)
        return moved

    def _convict(self, most: int) -> list[Recovered]:
        return self._store.convict_overdue(self._times.kill_grace, self._times.lease, most)
