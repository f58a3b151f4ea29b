"""Delayed starts, retries and stays in the queue that came due."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 1000


class TimersDuty:
    name = "timers"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(BATCH)

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        return sum(
            budget.batches(self._batch, lambda most: self._store.release_due(most, enough=budget.is_over), int)
        )
