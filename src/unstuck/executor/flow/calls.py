"""How a handler asks its supervisor for something and waits for the answer: a thread blocks, a coroutine awaits.

No call waits for ever: a request to stop wakes all that wait (a coroutine on the executor's own loop is cancelled
instead), and so does the end of the attempt. What was asked by then is on its way all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from unstuck.executor.caller import running_loop
from unstuck.executor.messages import MAX_FLOW_CALLS, Question, Reply


class PendingAnswer:
    """Where one answer arrives."""

    __slots__ = ("_answers", "_bell", "_followers", "_future", "loop")

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = running_loop()
        self._future = self.loop.create_future() if self.loop is not None else None
        self._bell = threading.Event() if self.loop is None else None
        #: The first counts. Appending is atomic, so two threads cannot both be the first.
        self._answers: list[Any] = []
        self._followers: list[PendingAnswer] = []

    def follow(self) -> PendingAnswer:
        """For another call, maybe on another thread, that wants the same answer: the first caller may be gone."""
        pending = PendingAnswer()
        # In this order, and in `put` in the other: the thread that comes second sees what the first has done.
        self._followers.append(pending)
        if self._answers:
            pending.put(self._answers[0])
        return pending

    def put(self, answer: Any) -> None:
        """By any thread. None: there will be no answer."""
        self._answers.append(answer)
        for pending in tuple(self._followers):
            pending.put(self._answers[0])
        if self._bell is not None:
            self._bell.set()
        elif self.loop is not None:
            # A handler's own loop may be closed by now; then nobody waits on it either.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, timeout: float | None = None) -> Any:
        """Without a loop this blocks here and never suspends; only then may there be a timeout."""
        if self._future is not None:
            await self._future
        elif self._bell is not None and not self._bell.wait(timeout):
            raise TimeoutError
        return self._answers[0]


class FlowCalls:
    """The questions of one attempt. `send` gives one to the control thread: False once the attempt has ended."""

    __slots__ = ("_backlog", "_home", "_is_over", "_lock", "_send", "_serial", "_under_way", "_waiting")

    def __init__(self, send: Callable[[int, Question], bool], home: asyncio.AbstractEventLoop | None) -> None:
        self._send = send
        self._home = home
        # Reentrant: the collector may close a coroutine here that was waiting.
        self._lock = threading.RLock()
        self._serial = 0
        self._under_way: dict[int, PendingAnswer] = {}
        #: More than may be under way at once.
        self._backlog: deque[tuple[PendingAnswer, Question]] = deque()
        self._waiting: set[PendingAnswer] = set()
        self._is_over = False

    async def ask(self, question: Question) -> Reply | None:
        """None: it was asked to stop, or has ended, before an answer came."""
        answer: Reply | None = await self.wait(self.send(question))
        return answer

    def send(self, question: Question) -> PendingAnswer:
        """Sends it at once; the answer may be awaited later, or never."""
        pending = PendingAnswer()
        with self._lock:
            if len(self._under_way) < MAX_FLOW_CALLS:
                self._dispatch(pending, question)
            else:
                self._backlog.append((pending, question))
        return pending

    async def wait(self, pending: PendingAnswer, timeout: float | None = None) -> Any:
        """For the answer, or for the request to stop."""
        with self._lock:
            if self._is_over:
                pending.put(None)
            self._waiting.add(pending)
        try:
            return await pending.wait(timeout)
        finally:
            with self._lock:
                self._waiting.discard(pending)

    def answered(self, serial: int, answer: Reply) -> None:
        """By the control thread."""
        with self._lock:
            pending = self._under_way.pop(serial, None)
            if self._backlog:
                self._dispatch(*self._backlog.popleft())
        if pending is not None:
            pending.put(answer)

    def wake(self) -> None:
        """The attempt was asked to stop: calls that wait, or are about to, wait no longer."""
        with self._lock:
            self._is_over = True
            waiting = [pending for pending in self._waiting if pending.loop is None or pending.loop is not self._home]
        for pending in waiting:
            pending.put(None)

    def close(self) -> None:
        """Its handler has ended; threads that it left behind may wait here."""
        with self._lock:
            self._is_over = True
            self._backlog.clear()
            waiting = list(self._waiting)
        for pending in waiting:
            pending.put(None)

    def _dispatch(self, pending: PendingAnswer, question: Question) -> None:
        self._serial += 1
        self._under_way[self._serial] = pending
        if not self._send(self._serial, question):
            pending.put(None)
