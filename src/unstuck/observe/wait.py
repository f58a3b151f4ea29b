"""Wait: until a job ends. Looks often at first, then less; a store that is away for a while is waited for too.

A look may be patient: over HTTP it is the server that waits, and answers when the job has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Protocol, TypeVar

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import StoreError
from unstuck.model.lifecycle import JobState

SOON = 0.02
LATE = 0.5
GROWTH = 1.5
#: How long a store may be away before a wait without a limit of its own gives up.
PATIENCE = 60.0
#: A patient look waits for so many times as long as others would pause: for five seconds in the end.
PATIENT = 10


class Stands(Protocol):
    """A job as somebody sees it."""

    @property
    def state(self) -> JobState: ...


J = TypeVar("J", bound=Stands)


class Watch:
    """One wait: when to look again, when to give up. Both colours of waiting ask it."""

    def __init__(self, timeout: float | None, clock: Clock) -> None:
        self._clock = clock
        self._until = None if timeout is None else clock.boot() + timeout
        self._lost_at: float | None = None
        self._pauses = _pauses()

    def pause(self) -> float | None:
        """Seconds until the next look; None when the time is over."""
        pause = next(self._pauses)
        if self._until is None:
            return pause
        left = self._until - self._clock.boot()
        return min(pause, left) if left > 0 else None

    def patience(self) -> float | None:
        """Seconds for which the next look may wait by itself; None when the time is over."""
        pause = next(self._pauses) * PATIENT
        left = pause if self._until is None else self._until - self._clock.boot()
        return min(pause, left) if left > 0 else None

    def rest(self) -> None:
        """The next pause is as short as the first: what was looked at has waited by itself."""
        self._pauses = _pauses()

    def saw(self) -> None:
        self._lost_at = None

    @property
    def is_lost(self) -> bool:
        return self._lost_at is not None

    def lost(self, error: StoreError) -> None:
        """Raises once the store has been away for too long to wait on."""
        now = self._clock.boot()
        self._lost_at = now if self._lost_at is None else self._lost_at
        if now - self._lost_at > PATIENCE or (self._until is not None and now >= self._until):
            raise error


def _pauses() -> Iterator[float]:
    pause = SOON
    while True:
        yield pause
        pause = min(pause * GROWTH, LATE)


def wait_for_end(
    read: Callable[[], J],
    timeout: float | None = None,
    clock: Clock | None = None,
    patient: Callable[[float], J] | None = None,
) -> J | None:
    """The job once it has ended; None if the time is over first. `patient`: a look that waits for the end by itself,
    for so many seconds at most; it is asked after the first."""
    clock = clock or MachineClock()
    watch, never = Watch(timeout, clock), threading.Event()
    look = read
    while True:
        if (record := _look(look, watch)) is not None:
            return record
        if patient is None or watch.is_lost:
            look, pause = read, watch.pause()
        else:
            within = watch.patience()
            look, pause = partial(patient, within or 0.0), None if within is None else SOON
        if pause is None:
            return None
        clock.wait(never, pause)


async def await_end(
    read: Callable[[], Awaitable[J]], timeout: float | None = None, clock: Clock | None = None
) -> J | None:
    """The same without blocking the loop."""
    import asyncio

    watch = Watch(timeout, clock or MachineClock())
    while True:
        try:
            record = await read()
            watch.saw()
            if record.state.is_final:
                return record
        except StoreError as error:
            watch.lost(error)
        if (pause := watch.pause()) is None:
            return None
        await asyncio.sleep(pause)


def _look(read: Callable[[], J], watch: Watch) -> J | None:
    try:
        record = read()
    except StoreError as error:
        watch.lost(error)
        return None
    watch.saw()
    return record if record.state.is_final else None
