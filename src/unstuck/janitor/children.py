"""Children that are not to outlive how their parent ended -> cancelled."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class ChildrenDuty(SweepDuty):
    name = "children"
    most = 100

    def tick(self, now: float, budget: Budget) -> int:
        return sum(
            budget.batches(self._batch, lambda most: self._store.tend_children(most, enough=budget.is_over), int)
        )
