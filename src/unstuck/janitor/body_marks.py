"""Body marks whose incarnation is gone, its self-fence margin passed -> lifted."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class BodyMarksDuty(SweepDuty):
    name = "body_marks"

    def tick(self, now: float, budget: Budget) -> int:
        return sum(
            budget.batches(self._batch, lambda most: self._store.lift_body_marks(self._times.margin, most), int)
        )
