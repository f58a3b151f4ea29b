"""Offers that nobody heard of: the answer was lost, or its worker is gone; their jobs go back, uncharged."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty


class OffersDuty(SweepDuty):
    name = "offers"

    def tick(self, now: float, budget: Budget) -> int:
        return budget.call(self._batch, lambda most: self._store.return_offers(self._times.offer_ack, most))
