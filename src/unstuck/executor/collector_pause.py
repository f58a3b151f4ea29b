"""Keeps the cyclic collector off our own threads: what it finds may be a handler's, whose finalizer may block.

The collector runs on whichever thread makes one object too many. While a thread of ours is at work, no number of them
is too many; the others go on meanwhile, and the next object that one of them makes starts what was due.
"""

from __future__ import annotations

import gc
import threading


class CollectorPause:
    """From `begin` to `end` nothing is collected; for threads that must not run a handler's code.

    By the threshold and not by `gc.disable`: handlers ask whether the collector is enabled, and put it back as they
    found it. A threshold of 0 is never put back, for the same reason: it may be ours.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._usual = gc.get_threshold()

    def begin(self) -> None:
        # Nothing here makes an object before it has lost its power: a `with` would, for one.
        was_enabled = gc.isenabled()
        gc.disable()
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            found = gc.get_threshold()
            if found[0]:
                self._usual = found
            gc.set_threshold(0)
        self._lock.release()
        if was_enabled:
            gc.enable()

    def end(self) -> None:
        self._lock.acquire()
        self._depth -= 1
        if self._depth == 0 and not gc.get_threshold()[0]:
            gc.set_threshold(*self._usual)
        self._lock.release()
