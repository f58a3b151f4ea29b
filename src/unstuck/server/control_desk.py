"""ControlDesk: what is asked of workers at a distance, looked up for all who wait at this server at once.

One thread asks the database twice a second, by two statements, however many workers wait. A worker hears of a cancel
within that and its own way; one who waits holds no thread and no connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from hashlib import blake2b

from unstuck.clock import Clock
from unstuck.store.port import ControlNews, Store
from unstuck.store.port.wire import encoded
from unstuck.telemetry import logger

EVERY = 0.5
LINGER = 5.0
_AWAY = 1.0


class ControlListener:
    """One who waits for news of a worker. `news` is None until somebody looked; `wake` is called when it differs from
    what was `seen`."""

    def __init__(self, worker: int, seen: str, wake: Callable[[], None]) -> None:
        self.worker = worker
        self.wake = wake
        self.seen = seen
        self.news: ControlNews | None = None
        self.name = ""

    def tell(self, news: ControlNews) -> None:
        self.name = name_of(news)
        self.news = news
        if self.name != self.seen:
            self.wake()


def name_of(news: ControlNews) -> str:
    """The same news have the same name, at every server."""
    return blake2b(encoded(news), digest_size=16).hexdigest()


class ControlDesk:
    def __init__(self, store: Callable[[], Store], clock: Clock) -> None:
        self._open = store
        self._clock = clock
        self._lock = threading.Lock()
        self._listeners: set[ControlListener] = set()
        self._has_listeners = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        self._closed.set()
        self._has_listeners.set()
        if (thread := self._thread) is not None:
            thread.join(EVERY + 5.0)

    def join(self, listener: ControlListener) -> None:
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                thread = threading.Thread(target=self._keep, name="unstuck-control", daemon=True)
                thread.start()
                self._thread = thread
            self._listeners.add(listener)
            self._has_listeners.set()

    def leave(self, listener: ControlListener) -> None:
        with self._lock:
            self._listeners.discard(listener)
            if not self._listeners:
                self._has_listeners.clear()

    def _keep(self) -> None:
        while not self._closed.is_set():
            if not self._clock.wait(self._has_listeners, LINGER):
                with self._lock:
                    if not self._listeners:
                        self._thread = None
                        return
            try:
                self._turn()
            except Exception:
                logger.exception("what is asked of workers at a distance could not be looked up")
                self._clock.wait(self._closed, _AWAY)
            self._clock.wait(self._closed, EVERY)

    def _turn(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        if not listeners:
            return
        news = self._open().control_news(sorted({listener.worker for listener in listeners}))
        for listener in listeners:
            listener.tell(news.get(listener.worker, ControlNews()))
