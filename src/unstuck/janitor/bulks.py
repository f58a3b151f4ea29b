"""Bulks that people started -> carried on, a batch of each at a time."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class BulksDuty(SweepDuty):
    name = "bulks"

    def tick(self, now: float, budget: Budget) -> int:
        return budget.call(self._batch, lambda most: self._store.carry_bulks(most, enough=budget.is_over))
