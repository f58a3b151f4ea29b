"""The backstop: attempts far past their limit or request, whose own supervisor did not judge them -> stuck."""

from __future__ import annotations

import logging

from unstuck.model.times import Times
from unstuck.store.port import Store
from unstuck.telemetry import emit


class Overdue:
    name = "overdue"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float) -> int:
        convicted = self._store.convict_overdue(self._times.kill_grace, self._times.lease)
        for job in convicted:
            emit("overdue", level=logging.WARNING, job=job.id, worker=job.worker, state=job.state)
        return len(convicted)
