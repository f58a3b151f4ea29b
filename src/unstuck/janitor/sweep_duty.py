"""SweepDuty: what the duties share that have a turn in every sweep and move batches of what they find."""

from __future__ import annotations

from typing import ClassVar

from unstuck.model.batch import Batch
from unstuck.model.times import Times
from unstuck.store.port import Store


class SweepDuty:
    #: The most that one statement moves.
    most: ClassVar[int] = 500

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._batch = Batch(self.most)

    @property
    def every(self) -> float:
        return self._times.sweep
