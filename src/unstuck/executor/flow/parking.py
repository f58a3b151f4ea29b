"""How an attempt comes to park: it wants to, and does once no step is under way.

Parked sooner, its job could be woken while a step of it still runs, and the next attempt would call that step again,
beside the first call.
"""

from __future__ import annotations

import threading

from unstuck.executor.flow.calls import FlowCalls, PendingAnswer
from unstuck.model.waits import Wait


class Parking:
    """Of one attempt. Between wanting and having parked nothing new begins; what began may end."""

    def __init__(self, calls: FlowCalls) -> None:
        self.parked: Wait | None = None
        self._calls = calls
        # Reentrant: the collector may end a step here, at any line.
        self._lock = threading.RLock()
        self._wanted: Wait | None = None
        self._steps = 0
        #: Of the wait that wants to park, and of those that want to know what becomes of it.
        self._last_step: PendingAnswer | None = None
        self._onlookers: list[PendingAnswer] = []

    def begin_step(self) -> bool:
        """False: not any more; first see what becomes of the wait."""
        with self._lock:
            if self._wanted is not None:
                return False
            self._steps += 1
            return True

    def end_step(self) -> None:
        """The wait itself has to park: what cut off the step may have cut off the wait with it."""
        with self._lock:
            self._steps -= 1
            pending = None if self._steps else self._last_step
        if pending is not None:
            pending.put(True)

    def want(self, wait: Wait) -> bool:
        """False: another wait has come first."""
        with self._lock:
            if self._wanted is not None:
                return False
            self._wanted = wait
            return True

    async def alone(self) -> bool:
        """Until no step is under way. False: it was asked to stop, or has ended, before."""
        with self._lock:
            if not self._steps:
                return True
            self._last_step = pending = PendingAnswer()
        return await self._calls.wait(pending) is not None

    def park(self) -> None:
        self.parked = self._wanted
        self._tell()

    def withdraw(self) -> None:
        """The wait was cut off, and is none."""
        self._wanted = self._last_step = None
        self._tell()

    async def settled(self) -> bool:
        """Until it has parked or does not want to (any more). False: it was asked to stop, or has ended, before."""
        with self._lock:
            if self._wanted is None or self.parked is not None:
                return True
            pending = PendingAnswer()
            self._onlookers.append(pending)
        return await self._calls.wait(pending) is not None

    def _tell(self) -> None:
        with self._lock:
            onlookers, self._onlookers = self._onlookers, []
        for pending in onlookers:
            pending.put(True)
