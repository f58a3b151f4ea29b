"""CancellableClock: a handler that waits for another job still hears when its own is asked to stop."""

from __future__ import annotations

import threading

from unstuck.clock import MachineClock
from unstuck.executor.context import current, running


class CancellableClock(MachineClock):
    def wait(self, event: threading.Event, seconds: float) -> bool:
        happened = super().wait(event, seconds)
        if running.get() is not None:
            current().check()
        return happened
