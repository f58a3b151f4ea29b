"""Pauses of queues, workflows and tenants whose time is over -> gone, and told. They shut nothing any more."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.times import Times
from unstuck.store.port import EndedPauses, Store

#: Their routes are open from the instant itself: only the news is late.
_EVERY = 10.0


class PausesDuty(SweepDuty):
    name = "pauses"
    most = 100

    @property
    def every(self) -> float:
        return max(self._times.sweep, _EVERY)

    def __init__(self, store: Store, times: Times) -> None:
        super().__init__(store, times)
        #: Of those that were over first, the number that could not end in this round.
        self._past = 0

    def tick(self, now: float, budget: Budget) -> int:
        """Page after page, past those that somebody holds or the database refuses to give up. A turn that ends before
        the last page is continued behind it."""
        ended = 0
        for page in budget.batches(self._batch, self._page, lambda page: page.ended + page.stayed):
            ended += page.ended
            self._past += page.stayed
        if not budget.was_over:
            self._past = 0
        return ended

    def _page(self, most: int) -> EndedPauses:
        return self._store.end_pauses(most, self._past)
