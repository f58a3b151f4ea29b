"""Children that are not to outlive how their parent ended -> cancelled."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 100


class Children:
    name = "children"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._has_more = False

    @property
    def every(self) -> float:
        """One batch a turn, each child a transaction; the next turn comes at once while there is more."""
        return 0.05 if self._has_more else self._times.sweep

    def tick(self, now: float) -> int:
        moved = self._store.tend_children(BATCH)
        self._has_more = moved >= BATCH
        return moved
