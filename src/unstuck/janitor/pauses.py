"""Pauses of queues, workflows and tenants whose time is over -> gone, and told. They shut nothing any more."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty

#: Their routes are open from the instant itself: only the news is late.
_EVERY = 10.0


class PausesDuty(SweepDuty):
    name = "pauses"
    most = 100

    @property
    def every(self) -> float:
        return max(self._times.sweep, _EVERY)

    def tick(self, now: float, budget: Budget) -> int:
        return budget.call(self._batch, self._store.end_pauses)
