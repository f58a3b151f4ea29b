"""Body marks whose incarnation is gone, its self-fence margin passed -> lifted."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 500


class BodyMarksDuty:
    name = "body_marks"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(BATCH)

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        return sum(
            budget.batches(self._batch, lambda most: self._store.lift_body_marks(self._times.margin, most), int)
        )
