"""Lanes: the threads on which operations run, so that the loop never waits for a database.

What waits for more than the database (a worker's answer) has a lane of its own: a few patient callers must not keep
everybody else waiting. Both are bounded, and what finds no place is refused at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from unstuck.server.problems import HttpProblem

T = TypeVar("T")

#: As many as the store has connections.
THREADS = 8
#: Requests that wait for a thread, beside those that have one.
WAITING = 256


class Lane:
    def __init__(self, name: str, threads: int = THREADS, waiting: int = WAITING) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=f"unstuck-{name}")
        self._places = threading.BoundedSemaphore(threads + waiting)

    async def run(self, work: Callable[[], T]) -> T:
        """Refused if every place is taken. Whose caller leaves keeps its place until it is done."""
        if not self._places.acquire(blocking=False):
            raise HttpProblem("Overloaded", "every thread is busy, and as many requests wait as may")
        try:
            future = self._pool.submit(work)
        except RuntimeError:  # it was closed
            self._places.release()
            raise HttpProblem("Overloaded", "the server is shutting down") from None
        future.add_done_callback(self._leave)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _leave(self, _: Future[T]) -> None:
        self._places.release()
