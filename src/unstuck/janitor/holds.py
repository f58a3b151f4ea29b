"""Holds whose incarnation is gone, its self-fence margin passed -> lifted."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.store.port import Store


class Holds:
    name = "holds"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float) -> int:
        return self._store.lift_holds(self._times.margin)
