"""Budget: how long a duty may go on in one turn, and how much it takes at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from unstuck.clock import Clock
from unstuck.model.batch import Batch

T = TypeVar("T")
#: A batch should take this part of the budget (a quarter): a duty gives way between two batches.
_BATCHES = 4


def nobody_asks() -> None:
    pass


class Budget:
    """A duty asks between two batches whether its time is over, and the asking is a sign of life: a duty that goes on
    looks alive, however much there is to do."""

    def __init__(self, clock: Clock, seconds: float, alive: Callable[[], None] = nobody_asks) -> None:
        self._clock = clock
        self._alive = alive
        self._aim = seconds / _BATCHES
        self._asked_at = clock.boot()
        self._ends_at = self._asked_at + seconds
        self._longest = 0.0
        #: It was asked when its time was over: there may be more to do.
        self.was_over = False

    def is_over(self) -> bool:
        self._look()
        self._alive()
        self.was_over = self._asked_at >= self._ends_at
        return self.was_over

    def call(self, batch: Batch, work: Callable[[int], T]) -> T:
        """One batch, or several that ask in between; the longest of them decides how large the next one is. One that
        fails is tried again with fewer while there is time, down to one."""
        return self._try(batch, work)[0]

    def batches(self, batch: Batch, work: Callable[[int], T], count: Callable[[T], int]) -> Iterator[T]:
        """One after the other until one is not full, and there is no more, or the time is over."""
        while True:
            done, asked = self._try(batch, work)
            yield done
            if count(done) < asked or self.is_over():
                return

    def _try(self, batch: Batch, work: Callable[[int], T]) -> tuple[T, int]:
        """With how many it was done, too."""
        while True:
            self._look()
            self._longest, asked = 0.0, batch.size
            try:
                done = work(asked)
            except Exception:
                batch.failed()
                if asked == 1 or self.is_over():
                    raise
            else:
                self._look()
                batch.took(self._longest, self._aim)
                return done, asked

    def _look(self) -> None:
        now = self._clock.boot()
        self._longest = max(self._longest, now - self._asked_at)
        self._asked_at = now
