"""What has ended -> counted in the minute of its end."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.series import MINUTE

#: In store calls: no transaction lives as long, in which a job could have ended before.
PATIENCE = 4
#: Between two looks, in seconds: only whole minutes are counted, a minute later.
REST = MINUTE / 4


class SeriesDuty(SweepDuty):
    name = "series"
    #: SQLite's writer, which serves nobody else meanwhile, needs some microseconds of CPU for each.
    most = 5000

    @property
    def every(self) -> float:
        return max(super().every, REST)

    def tick(self, now: float, budget: Budget) -> int:
        settled_after = max(MINUTE, PATIENCE * self._times.store_call)
        return sum(budget.batches(self._batch, lambda most: self._store.count_ends(settled_after, most), int))
