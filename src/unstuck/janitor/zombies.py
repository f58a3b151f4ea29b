"""Leases that ran out -> their attempts are settled as lost."""

from __future__ import annotations

import logging

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.store.port import Recovered
from unstuck.telemetry import emit


class ZombiesDuty(SweepDuty):
    name = "zombies"

    def tick(self, now: float, budget: Budget) -> int:
        """Batch after batch until none is left: a worker with thousands of jobs may have died."""
        moved = 0
        for recovered in budget.batches(self._batch, lambda most: self._recover(most, budget), len):
            moved += len(recovered)
            for job in recovered:
                silent_for = round(job.silent_for, 3)
                emit(
                    "recovered",
                    level=logging.WARNING,
                    job=job.id,
                    worker=job.worker,
                    state=job.state,
                    silent_for=silent_for,
                )
        return moved

    def _recover(self, most: int, budget: Budget) -> list[Recovered]:
        return self._store.recover_lost(self._times.lost_grace, most, enough=budget.is_over)
