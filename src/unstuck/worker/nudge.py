"""The nudge: other threads and signal handlers end the main thread's wait for its executors."""

from __future__ import annotations

import threading

from unstuck.worker.processes import FleetPort


class Nudge:
    def __init__(self, fleet: FleetPort) -> None:
        self._fleet = fleet
        self._lock = threading.Lock()
        self._is_wanted = False
        self._is_closed = False

    def __call__(self) -> None:
        """Also from a signal handler, so it waits for no lock: the thread that holds it nudges, once more if its own
        nudge may have been heard before this one was wanted."""
        self._is_wanted = True
        while self._is_wanted and self._lock.acquire(blocking=False):
            try:
                self._is_wanted = False
                if not self._is_closed:
                    self._fleet.nudge()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Before the fleet is closed: nothing reaches it after that."""
        with self._lock:
            self._is_closed = True
