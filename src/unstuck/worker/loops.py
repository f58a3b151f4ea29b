"""Loops and their watchdog: a loop is a tick that is called again and again; if it stops ticking, the process ends.

A loop catches everything its tick raises, says so and rests a little longer each time: an error in one loop never
stops another. What it cannot catch, a tick that never comes back, the watchdog sees. A tick that fails is a sign of
life all the same, but not of health: `trouble` says so, and the worker judges it (`roles.py`).
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Sequence

from unstuck.clock import Clock
from unstuck.model.errors import StoreError
from unstuck.model.trouble import Trouble
from unstuck.telemetry import emit

#: The exit code of a process that ended itself because one of its loops stood still.
STALLED = 70
_LONGEST_REST = 1.0


class Loop:
    """A named tick on a thread of its own. `silence`: how long it may go without a stamp."""

    def __init__(self, name: str, tick: Callable[[], float], clock: Clock, silence: float) -> None:
        self.name = name
        self.silence = silence
        self._tick = tick
        self._clock = clock
        self._wake = threading.Event()
        self._stopping = False
        #: How its tick fails, until one works again.
        self.trouble: Trouble | None = None
        self._thread = threading.Thread(target=self._run, name=f"unstuck-{name}", daemon=True)
        self.stamped_at = clock.boot()

    def start(self) -> None:
        self.stamp()
        self._thread.start()

    def stamp(self) -> None:
        self.stamped_at = self._clock.boot()

    def wake(self) -> None:
        """End its rest early."""
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def join(self, timeout: float) -> bool:
        if self._thread.ident is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            self.stamp()
            rest = self.once()
            self.stamp()
            if rest > 0:
                self._clock.wait(self._wake, rest)
            self._wake.clear()

    def turn(self) -> None:
        """For a caller that runs the loop on its own thread: a tick, and a rest if it fails. Only a tick that works
        is a sign of life, so an error that lasts is seen by the watchdog."""
        rest = self.once()
        if self.trouble is None:
            self.stamp()
        if rest > 0:
            self._clock.wait(self._wake, rest)

    def once(self) -> float:
        """One tick; whatever it raises is said, and answered with a rest."""
        try:
            rest = self._tick()
        except StoreError as error:
            rest = self._rest(error)
            self._say(error)
            return rest
        except Exception as error:
            logging.getLogger("unstuck").exception("the %s loop failed", self.name)
            emit("loop_failed", level=logging.ERROR, loop=self.name, error=repr(error))
            return self._rest(error)
        self.trouble = None
        return rest

    def _say(self, error: StoreError) -> None:
        assert self.trouble is not None
        if self.trouble.is_worth_saying:
            times = self.trouble.failures
            emit("store_trouble", level=logging.WARNING, loop=self.name, error=str(error), times=times)

    def _rest(self, error: Exception) -> float:
        self.trouble = Trouble.after(self.trouble, error, self._clock.boot())
        return min(_LONGEST_REST, 0.05 * 2.0 ** min(self.trouble.failures, 10))


class LoopWatchdog:
    """Ends the process when a loop stands still: a worker that looks alive and is not is worse than none."""

    def __init__(self, loops: Sequence[Loop], clock: Clock, end: Callable[[str], None] | None = None) -> None:
        self._loops = loops
        self._clock = clock
        self._end = end or end_process
        self._every = 1.0
        self._checked_at = clock.boot()

    def tick(self) -> float:
        now = self._clock.boot()
        gap, self._checked_at = now - self._checked_at, now
        if gap > 3 * self._every:
            # We were stopped or suspended ourselves: give everyone the chance to tick again.
            for loop in self._loops:
                loop.stamp()
            return self._every
        for loop in self._loops:
            if now - loop.stamped_at > loop.silence:
                self._end(f"the {loop.name} loop has not ticked for {now - loop.stamped_at:.1f} s{_last_error(loop)}")
        return self._every


def _last_error(loop: Loop) -> str:
    return "" if loop.trouble is None else f"; its last error was {loop.trouble.error!r}"


def end_process(reason: str) -> None:
    """The zygote hears of our death and ends the executors: nothing outlives us."""
    words = f"unstuck: {reason[:2000]}; this worker ends itself (exit code {STALLED})\n"
    try:
        # Not by way of logging: the loop that stands still may hold its lock. And only if there is room: a full pipe
        # would keep us alive.
        if select.select([], [2], [], 0)[1]:
            os.write(2, words.encode("utf-8", "replace"))
    except (OSError, ValueError):
        pass
    finally:
        os._exit(STALLED)
