"""The inbox from its beginning. Entries get their numbers before they commit, so a claimer, which reads on from the
last number it saw, passes by an entry that committed late. What is in quarantine is tried again, too."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class InboxDuty(SweepDuty):
    name = "inbox"
    most = 1000

    def tick(self, now: float, budget: Budget) -> int:
        found = budget.batches(self._batch, lambda most: self._store.ingest(0, most), lambda some: some.entries)
        return sum(some.woken for some in found) + self._store.ingest_again(self.most)
