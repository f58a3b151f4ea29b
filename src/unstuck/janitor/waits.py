"""Waits whose time has passed: their jobs go on with what was agreed for that, or fail.

The duty rests until the first wait ends, and no longer than a sweep: then it finds what other workers have parked
meanwhile. Its own worker calls it when it parks a job.
"""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.times import Times
from unstuck.store.port import Store

_SHORTEST_REST = 0.1


class WaitsDuty(SweepDuty):
    name = "waits"

    def __init__(self, store: Store, times: Times) -> None:
        super().__init__(store, times)
        self._rest = times.sweep
        self._in_vain = 0

    @property
    def every(self) -> float:
        return self._rest

    def tick(self, now: float, budget: Budget) -> int:
        self._rest = self._times.sweep  # should this turn fail
        moved = 0
        ahead = self._store.next_wait()
        if ahead == 0:
            moved = budget.call(self._batch, lambda most: self._store.expire_waits(most, enough=budget.is_over))
            ahead = self._store.next_wait()
        self._in_vain = self._in_vain + 1 if ahead == 0 and not moved else 0
        self._rest = self._until(ahead)
        return moved

    def _until(self, ahead: float | None) -> float:
        """A wait that is still overdue is locked by another transaction, or there were too many for one turn: look
        again soon, and ever later while nothing moves."""
        if ahead is None:
            return self._times.sweep
        shortest = _SHORTEST_REST * 2.0 ** min(self._in_vain, 10)
        return min(self._times.sweep, max(ahead, shortest))
