"""Limits by code whose version has no workers any more -> those of the version that the doors go by."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.times import Times
from unstuck.store.port import Store

#: A worker that registers does it at once; this is for the end of a version's last worker, which nobody announces.
_EVERY = 60.0


class LimitsDuty:
    name = "limits"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return max(self._times.sweep, _EVERY)

    def tick(self, now: float, budget: Budget) -> int:
        return self._store.keep_code_limits()
