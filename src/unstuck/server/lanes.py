"""Lanes: the threads on which operations run, so that the loop never waits for a database.

What waits for more than the database (a worker's answer) has a lane of its own: a few patient callers must not keep
everybody else waiting. Both are bounded, and what finds no place is refused at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from unstuck.server.problems import HttpProblem

T = TypeVar("T")

#: As many as the store has connections.
THREADS = 8
#: Requests that wait for a thread, beside those that have one.
WAITING = 256


class Landing:
    """Outcomes on their way from threads to the loop. However many come at once, it is woken once: a transaction of
    two hundred submits has two hundred of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._outcomes: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_called = False

    def put(self, waiter: asyncio.Future[Any], result: Any, error: BaseException | None = None) -> None:
        """Of any thread. Put first, looked then: whoever empties it says so before it begins."""
        self._outcomes.append((waiter, result, error))
        if self._is_called:
            return
        self._is_called = True
        try:
            self.loop.call_soon_threadsafe(self._land)
        except RuntimeError:
            pass  # the loop has ended, and nobody waits any more

    def _land(self) -> None:
        self._is_called = False
        while self._outcomes:
            waiter, result, error = self._outcomes.popleft()
            if waiter.done():
                continue  # its request was given up
            if error is None:
                waiter.set_result(result)
            elif isinstance(error, StopIteration):  # it would stop the one who waits, and a future takes none
                waiter.set_exception(
                    RuntimeError("there was nothing to take the first of").with_traceback(error.__traceback__)
                )
            else:
                waiter.set_exception(error)


class Lane:
    def __init__(self, name: str, threads: int = THREADS, waiting: int = WAITING) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=f"unstuck-{name}")
        self._places = threading.BoundedSemaphore(threads + waiting)
        self._landing: Landing | None = None

    async def run(self, work: Callable[[], T | Future[T]]) -> T:
        """What it answers, or what others do to whom it leaves that. Refused if every place is taken. Whose caller
        leaves keeps its place until it is done."""
        if not self._places.acquire(blocking=False):
            raise HttpProblem("Overloaded", "every thread is busy, and as many requests wait as may")
        loop = asyncio.get_running_loop()
        if self._landing is None or self._landing.loop is not loop:
            self._landing = Landing(loop)
        landing, waiter = self._landing, loop.create_future()
        try:
            future = self._pool.submit(work)
        except RuntimeError:  # it was closed
            self._places.release()
            raise HttpProblem("Overloaded", "the server is shutting down") from None
        future.add_done_callback(lambda done: self._leave(done, landing, waiter))
        return await waiter  # type: ignore[no-any-return]

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _leave(self, done: Future[Any], landing: Landing, waiter: asyncio.Future[Any]) -> None:
        self._places.release()
        _pass_on(done, landing, waiter)


def _pass_on(done: Future[Any], landing: Landing, waiter: asyncio.Future[Any]) -> None:
    if done.cancelled():
        landing.put(waiter, None, HttpProblem("Overloaded", "the server is shutting down"))
    elif (error := done.exception()) is not None:
        landing.put(waiter, None, error)
    elif isinstance(answer := done.result(), Future):
        answer.add_done_callback(lambda told: _pass_on(told, landing, waiter))
    else:
        landing.put(waiter, answer)
