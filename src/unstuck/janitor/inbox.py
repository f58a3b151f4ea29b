"""The inbox from its beginning: entries get their numbers before they commit, so who reads on from the last number he
saw, as claimers do, passes by one that came late. And what could not be worked off earlier, and was set aside."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 1000


class InboxDuty:
    name = "inbox"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(BATCH)

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        found = budget.batches(self._batch, lambda most: self._store.ingest(0, most), lambda some: some.entries)
        return sum(some.woken for some in found) + self._store.ingest_again(BATCH)
