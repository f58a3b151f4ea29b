"""Watchdog: ends calls on sockets that have passed their deadline, frozen server or not.

A blocked call cannot look at the clock, so one thread does it for all: it shuts the socket down, and the call returns
as if the server had hung up.
"""

from __future__ import annotations

import os
import socket
import threading

from unstuck.clock import boot


class Line:
    """One connection's socket, under a descriptor of our own: the driver may close its own at any moment, and the
    number would then belong to somebody else."""

    __slots__ = ("_socket", "deadline", "was_cut")

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self.deadline = float("inf")
        self.was_cut = False

    def cut(self) -> None:
        self.was_cut = True
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # hung up already

    def close(self) -> None:
        self._socket.close()


class CallWatchdog:
    """Starts its thread with the first call it watches."""

    def __init__(self) -> None:
        self._lines: set[Line] = set()
        self._lock = threading.RLock()  # taken by itself: a Condition's own way to it is Python
        self._changed = threading.Condition(self._lock)
        self._sleeps_until = float("inf")
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, line: Line, deadline: float) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._loop, name="unstuck-call-deadline", daemon=True)
                thread.start()
                self._thread = thread
            line.deadline = deadline
            self._lines.add(line)
            if deadline < self._sleeps_until:
                # Rare: the thread sleeps until the oldest deadline it knew, and new calls end after that.
                self._changed.notify()

    def release(self, line: Line) -> None:
        with self._lock:
            self._lines.discard(line)
            if self._closed and not self._lines:
                self._changed.notify()

    def close(self) -> None:
        """The thread ends with the last call under way: those keep their deadlines."""
        with self._lock:
            self._closed = True
            self._changed.notify()

    def _loop(self) -> None:
        with self._lock:
            while self._lines or not self._closed:
                now = boot()
                for line in [line for line in self._lines if line.deadline <= now]:
                    self._lines.discard(line)
                    line.cut()
                self._sleeps_until = min((line.deadline for line in self._lines), default=float("inf"))
                self._changed.wait(None if self._sleeps_until == float("inf") else self._sleeps_until - now)
            self._thread = None  # a connection that comes late is watched by the next one
