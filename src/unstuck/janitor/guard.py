"""Jobs of blacklisted workflows -> failed or held; what was held for a lifted entry -> queued; probes -> judged."""

from __future__ import annotations

import logging

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.guard import SYSTEM
from unstuck.model.times import Times
from unstuck.store.port import Store
from unstuck.telemetry import emit

#: The number of entries that are looked at for news in one turn.
NEWS = 20


class GuardDuty(SweepDuty):
    name = "guard"

    def __init__(self, store: Store, times: Times) -> None:
        super().__init__(store, times)
        #: Entries up to here are no news; None: nobody has looked yet.
        self._seen: int | None = None

    def tick(self, now: float, budget: Budget) -> int:
        self._tell()
        return budget.call(self._batch, lambda most: self._store.tend_guard(most, enough=budget.is_over))

    def _tell(self) -> None:
        """Entries that a breaker made, once they are committed, whichever worker's settlement it was."""
        newest = self._store.blacklist_history(limit=NEWS)
        if self._seen is not None:
            for entry in reversed([e for e in newest if e.number > self._seen and e.blacklisted_by == SYSTEM]):
                emit(
                    "blacklisted",
                    level=logging.WARNING,
                    workflow=entry.workflow,
                    tenant=entry.tenant,
                    reason=entry.reason,
                )
        self._seen = max((entry.number for entry in newest), default=0)
