"""The one place that asks the time.

Three clocks, never mixed: the store's (leases, timers, timestamps) is asked of the store itself; BOOTTIME
(grace, timeouts, self-fencing) goes on during suspend and never steps; the wall is for display only.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot() -> float:
    """Seconds since the machine started, suspend included."""
    return time.clock_gettime(_BOOT)


def wall() -> datetime:
    """For people's eyes only: it may step."""
    return datetime.now(UTC)


class Clock(Protocol):
    """What a loop may ask of time."""

    def boot(self) -> float: ...
    def wait(self, event: threading.Event, seconds: float) -> bool: ...


class MachineClock:
    """The real one."""

    def boot(self) -> float:
        return boot()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


class FakeClock:
    """Time that a test moves by hand; a wait advances it at once."""

    def __init__(self, start: float = 1000.0) -> None:
        self.seconds = start

    def boot(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if not event.is_set():
            self.advance(seconds)
        return event.is_set()
