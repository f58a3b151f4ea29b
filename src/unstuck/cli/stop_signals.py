"""StopSignals: how often we were asked to stop, and a wait that ends with the next time."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from unstuck.worker.shutdown import SIGNALS


class StopSignals:
    """Ctrl-C, TERM and HUP (not under `nohup`). A handler only counts: it may strike while any lock is held."""

    def __init__(self) -> None:
        self.asked = 0
        self._before: dict[signal.Signals, Any] = {}
        self._ear, self._mouth = -1, -1

    def __enter__(self) -> StopSignals:
        self._ear, self._mouth = os.pipe()
        for end in (self._ear, self._mouth):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._mouth, warn_on_full_buffer=False)
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._count)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        ends, self._ear, self._mouth = (self._ear, self._mouth), -1, -1  # a thread may still wake us
        for end in ends:
            os.close(end)

    def wake(self) -> None:
        """Ends the wait; from any thread."""
        with suppress(OSError):  # full: it ends anyway; closed: nobody waits any more
            os.write(self._mouth, b"\0")

    def wait(self, seconds: float, *others: int) -> bool:
        """Also until there is something to read in one of the others: whether there is."""
        heard = select.select([self._ear, *others], [], [], seconds)[0]
        if self._ear in heard:
            with suppress(BlockingIOError):
                os.read(self._ear, 4096)
        return any(other in heard for other in others)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
