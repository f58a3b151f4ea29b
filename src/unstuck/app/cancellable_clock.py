"""CancellableClock: a handler that waits for another job still hears when its own is asked to stop."""

from __future__ import annotations

import threading

from unstuck.clock import MachineClock
from unstuck.executor.context import current, running

#: Seconds for which one look may wait where nobody can interrupt it: its caller may want to stop.
LONGEST_LOOK = 5.0
LONGEST_IN_HANDLER = 1.0


def longest_look() -> float:
    return LONGEST_LOOK if running.get() is None else LONGEST_IN_HANDLER


class CancellableClock(MachineClock):
    def wait(self, event: threading.Event, seconds: float) -> bool:
        happened = super().wait(event, seconds)
        if running.get() is not None:
            current().check()
        return happened
