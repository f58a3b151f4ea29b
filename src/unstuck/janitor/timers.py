"""Delayed starts, retries and stays in the queue that came due."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class TimersDuty(SweepDuty):
    name = "timers"
    most = 1000

    def tick(self, now: float, budget: Budget) -> int:
        return sum(
            budget.batches(self._batch, lambda most: self._store.release_due(most, enough=budget.is_over), int)
        )
