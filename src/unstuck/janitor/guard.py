"""Jobs of blacklisted workflows -> failed or held; what was held for a lifted entry -> queued; probes -> judged."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 500


class Guard:
    name = "guard"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float) -> int:
        return self._store.tend_guard(BATCH)
