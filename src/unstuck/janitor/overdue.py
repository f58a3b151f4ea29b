"""The backstop: attempts far past their limit or request, whose own supervisor did not judge them -> stuck."""

from __future__ import annotations

import logging

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.store.port import Recovered
from unstuck.telemetry import emit


class OverdueDuty(SweepDuty):
    name = "overdue"

    def tick(self, now: float, budget: Budget) -> int:
        moved = 0
        for convicted in budget.batches(self._batch, self._convict, len):
            moved += len(convicted)
            for job in convicted:
                emit("overdue", level=logging.WARNING, job=job.id, worker=job.worker, state=job.state)
        return moved

    def _convict(self, most: int) -> list[Recovered]:
        return self._store.convict_overdue(self._times.kill_grace, self._times.lease, most)
