"""Waits whose time has passed: their jobs go on with what was agreed for that, or fail."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 500


class Waits:
    name = "waits"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float) -> int:
        return self._store.expire_waits(BATCH)
