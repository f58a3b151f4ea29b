"""What has ended -> counted in the minute of its end; what was enqueued -> counted."""

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
        return sum(budget.batches(self._batch, lambda most: self._count(self._settled_after, most), int))

    @property
    def _settled_after(self) -> float:
        return max(MINUTE, PATIENCE * self._times.store_call)

    def _count(self, settled_after: float, most: int) -> int:
        return self._store.count_ends(settled_after, most)


class EnqueuedDuty(SeriesDuty):
    name = "enqueued"

    def _count(self, settled_after: float, most: int) -> int:
        return self._store.count_enqueued(settled_after, most)
