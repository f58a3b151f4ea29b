"""The worker threads of an executor (`unstuck-job-N`): they run sync handlers, and nothing else.

There are as few of them as keep up, at most one per slot. One thread takes job after job while they are short. Only
when the backlog does not move fast enough are more recruited, twice as many each time: a burst of short jobs costs
no thread switches, a burst of sleeping ones is on its way within milliseconds. `feed` and `reinforce` are called by
the control thread alone.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence

from unstuck.executor.attempt import Attempt
from unstuck.executor.messages import INTERRUPT_SIGNAL


class Crew:
    def __init__(self, size: int, work: Callable[[Attempt], None]) -> None:
        self._size = size
        self._work = work
        self._backlog: deque[Attempt] = deque()
        self._idle: list[threading.Lock] = []
        self._members = 0
        self._seen = 0
        self._step = 1

    def feed(self, attempts: Sequence[Attempt]) -> None:
        self._backlog.extend(attempts)
        self._seen = len(self._backlog)
        self._step = 1
        self._recruit(1)

    @property
    def is_behind(self) -> bool:
        return bool(self._backlog) and (bool(self._idle) or self._members < self._size)

    def reinforce(self) -> None:
        """Called about every millisecond while behind: more threads if the backlog has not at least halved."""
        left = len(self._backlog)
        if left * 2 > self._seen:
            self._recruit(min(left, self._step))
            self._step *= 2
        self._seen = max(left, 1)

    def _recruit(self, threads: int) -> None:
        for _ in range(threads):
            if self._idle:
                self._idle.pop().release()
            elif self._members < self._size and not self._hire():
                return

    def _hire(self) -> bool:
        name = f"unstuck-job-{self._members}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError:
            # No more threads to be had: those there are go on, and the next round tries again.
            return False
        self._members += 1
        return True

    def _serve(self) -> None:
        # The control thread, which hires, blocks TERM and INT; what a handler starts would inherit that and could
        # not be terminated. Interrupts are the main thread's: only there do they end a wait.
        signal.pthread_sigmask(signal.SIG_SETMASK, (INTERRUPT_SIGNAL,))
        bell = threading.Lock()
        bell.acquire()
        while True:
            try:
                attempt = self._backlog.popleft()
            except IndexError:
                # A job that arrives right here is not lost: `is_behind` holds until a thread was woken for it.
                self._idle.append(bell)
                bell.acquire()
                continue
            self._work(attempt)
