"""Signals: drain, hand back, give up. A handler only notes the signal, without a lock; the loop asks what it means.

First TERM, INT or HUP (or `stop()`; under `nohup` not HUP): drain. No new claims, what has not started goes back,
what runs may finish.
At the drain limit: hand back. Running handlers are asked to stop (a durable DRAIN request), killed after their grace.
Second signal: hand back now, with the kill grace instead of each job's own. Third: kill and leave.
Exit codes: 0 after a drain, limit or not; 128 + signal (130, 143) when a second signal cut it short; that of `leave`
when nobody asked but the worker itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType

from unstuck.model.times import Times

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Phase(IntEnum):
    """How far the shutdown has come; it never goes back."""

    WORKING = 0
    DRAINING = 1
    HANDING_BACK = 2
    LEAVING = 3


class Shutdown:
    """Written by signal handlers and `ask()`, read by the loop."""

    def __init__(self, times: Times) -> None:
        self._times = times
        self._asked = 0
        self._since: float | None = None
        self._last_signal = signal.SIGTERM
        self._code = 0

    def ask(self, number: int = signal.SIGTERM) -> None:
        self._asked += 1
        self._last_signal = signal.Signals(number)

    def leave(self, code: int) -> None:
        """The worker itself sees that it had better drain. An earlier request by a person keeps its exit code."""
        if not self.is_asked:
            self._code = code
            self.ask()

    @property
    def is_asked(self) -> bool:
        return self._asked > 0

    @property
    def is_impatient(self) -> bool:
        """A second signal came: nobody waits for a job's own grace any more."""
        return self._asked > 1

    def phase(self, now: float) -> Phase:
        if self._asked == 0:
            return Phase.WORKING
        if self._since is None:
            self._since = now
        if self._asked > 2:
            return Phase.LEAVING
        if self._asked > 1 or now >= self._since + self._times.drain:
            return Phase.HANDING_BACK
        return Phase.DRAINING

    @property
    def exit_code(self) -> int:
        return 128 + self._last_signal if self.is_impatient else self._code


@contextmanager
def signals_handled(shutdown: Shutdown, nudge: Callable[[], None]) -> Iterator[None]:
    """Only the main thread may install handlers; elsewhere `stop()` is the way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        shutdown.ask(number)
        nudge()

    before = {number: signal.signal(number, note) for number in SIGNALS if not _is_nohup(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_nohup(number: signal.Signals) -> bool:
    """Who started it with `nohup` wants it to outlive the terminal."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN
