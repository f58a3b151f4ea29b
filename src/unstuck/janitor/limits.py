"""Limits by code whose version has no workers any more -> those of the version that the doors go by."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty

#: A worker that registers does it at once; this is for the end of a version's last worker, which nobody announces.
_EVERY = 60.0


class LimitsDuty(SweepDuty):
    name = "limits"

    @property
    def every(self) -> float:
        return max(self._times.sweep, _EVERY)

    def tick(self, now: float, budget: Budget) -> int:
        return self._store.keep_code_limits()
