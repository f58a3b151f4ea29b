"""The inbox from its beginning: entries get their numbers before they commit, so who reads on from the last number he
saw, as claimers do, passes by one that came late. And what could not be worked off earlier, and was set aside."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class InboxDuty(SweepDuty):
    name = "inbox"
    most = 1000

    def tick(self, now: float, budget: Budget) -> int:
        found = budget.batches(self._batch, lambda most: self._store.ingest(0, most), lambda some: some.entries)
        return sum(some.woken for some in found) + self._store.ingest_again(self.most)
