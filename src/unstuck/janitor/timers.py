"""Delayed starts, retries and stays in the queue that came due."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 1000


class Timers:
    name = "timers"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float) -> int:
        moved = 0
        while released := self._store.release_due(BATCH):
            moved += released
            if released < BATCH:
                break
        return moved
