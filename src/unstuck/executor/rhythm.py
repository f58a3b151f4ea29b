"""Rhythm: how often a thread of an executor shows that it lives.

While attempts are here, and for a while after the last of them, that is every pulse. A process that has had nothing
to do for longer has nothing that could keep it or be kept: it beats more rarely, and each of these beats is written
into the page ahead of its time, so that whoever reads the page sees no pulse missing.
"""

from __future__ import annotations

from collections.abc import Callable

#: After so many pulses without an attempt: what one has left behind is seen, and put right, by then.
CALM_AFTER = 10
#: So many times a pulse is the rest of who is calm.
CALM_PULSES = 5


class Rhythm:
    def __init__(self, pulse: float, is_busy: Callable[[], bool]) -> None:
        self.pulse = pulse
        self._is_busy = is_busy
        self._calm = 0

    def rest(self) -> float:
        """Until the next beat; asked at each."""
        self._calm = 0 if self._is_busy() else self._calm + 1
        return self.pulse if self._calm <= CALM_AFTER else CALM_PULSES * self.pulse
