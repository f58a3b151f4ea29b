"""Children that are not to outlive how their parent ended -> cancelled."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 100


class ChildrenDuty:
    name = "children"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(BATCH)

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        return sum(
            budget.batches(self._batch, lambda most: self._store.tend_children(most, enough=budget.is_over), int)
        )
