"""What attempts leave behind: threads, tasks that swallow their cancel, work handed to `asyncio.to_thread`.

Nothing is counted while attempts run. A thread is started, or work handed to the loop's pool, in the name of the
attempt that runs there (`running`), so the attempt itself keeps what it started. An attempt that started nothing
costs one comparison when it ends, and a neighbour's threads are never taken for its own.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from unstuck.executor.attempt import Attempt
from unstuck.executor.context import running
from unstuck.executor.messages import LeftBehindMessage
from unstuck.executor.started import STARTED_BY, PoolWork, StartedByJob

#: What has ended by then was only late: threads that are told to stop need a moment.
ALLOWED = 0.5
P = ParamSpec("P")
T = TypeVar("T")


class JobThreadPool(ThreadPoolExecutor):
    """The loop's own pool, which knows for which attempt it works. Its idle threads belong to no attempt."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        attempt = running.get()
        if not isinstance(attempt, Attempt):
            return super().submit(fn, *args, **kwargs)
        started = started_by(attempt)
        work = PoolWork(fn, started)
        # A thread that the pool starts meanwhile is its own and not the attempt's.
        before = running.set(None)
        try:
            future: Future[T] = super().submit(work, *args, **kwargs)
        finally:
            running.reset(before)
        started.pool_work[future] = work
        future.add_done_callback(lambda done: started.pool_work.pop(done, None))
        return future


class Leftovers:
    """What ended attempts have started. The control thread looks once, after a while, what of it is still there."""

    def __init__(self) -> None:
        self._ended: deque[tuple[float, StartedByJob]] = deque()
        #: To be forgotten where a handler's code may run: the last reference to a thread or a task may be ours.
        self._past: deque[StartedByJob] = deque()

    def look_later(self, attempt: Attempt, now: float) -> None:
        """Its handler has ended; called only if it has started something."""
        started = started_by(attempt)
        if attempt.tasks:
            started.tasks = attempt.tasks
        self._ended.append((now + ALLOWED, started))

    def look(self, now: float) -> Iterator[LeftBehindMessage]:
        while self._ended and self._ended[0][0] <= now:
            _, started = self._ended.popleft()
            self._past.append(started)
            if names := started.still_here():
                yield LeftBehindMessage(started.workflow, names)

    def forget(self) -> None:
        """On the main thread."""
        self._past.clear()


def started_by(attempt: Attempt) -> StartedByJob:
    if attempt.started is None:
        with _making:
            if attempt.started is None:
                made = StartedByJob(attempt.run.workflow, attempt.number)
                # A finalizer may have started a thread meanwhile.
                attempt.started = attempt.started or made
    return attempt.started


_making = threading.RLock()


def watch_threads() -> None:
    """From now on every thread that an attempt starts, or one of its threads, is noted as started by it.

    New threads have empty contextvars, and counting threads before and after would blame one job for its neighbour's:
    only their start can tell.
    """
    begin = threading.Thread.start
    pid = os.getpid()

    @functools.wraps(begin)
    def start(self: threading.Thread) -> None:
        if os.getpid() != pid:
            # In what a handler has forked nothing is noted: it must not wait for locks that were held at the fork.
            begin(self)
            return
        started = started_here()
        if started is None:
            begin(self)
            return
        # Before it begins: what it starts in turn is asked for at once.
        vars(self)[STARTED_BY] = started
        begin(self)
        started.add_thread(self)

    threading.Thread.start = start  # type: ignore[method-assign]


def started_here() -> StartedByJob | None:
    """Of the attempt that runs on this thread."""
    attempt = running.get()
    if isinstance(attempt, Attempt):
        return started_by(attempt)
    started = vars(threading.current_thread()).get(STARTED_BY)
    return started if isinstance(started, StartedByJob) else None
