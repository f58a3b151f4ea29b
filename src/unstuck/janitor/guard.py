"""Jobs of blacklisted workflows -> failed or held; what was held for a lifted entry -> queued; probes -> judged."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 500


class Guard:
    name = "guard"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(BATCH)

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        return budget.call(self._batch, lambda most: self._store.tend_guard(most, enough=budget.is_over))
