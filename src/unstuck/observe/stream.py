"""Stream: what comes bit by bit, one by one, for functions and for coroutines.

A source looks and hands out; a stream waits between its looks, longer while nothing comes. A store that is away is
waited for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from enum import Enum, auto
from typing import Any, Generic, Protocol, TypeVar

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import StoreError
from unstuck.observe.wait import Watch

T = TypeVar("T")
V = TypeVar("V")
T_co = TypeVar("T_co", covariant=True)

#: Seconds for which a stream that follows nothing waits for another reader that is just sequencing.
LONGEST_TURN = 0.5


class Found(Enum):
    """What a look found: something, nothing while another reader is just sequencing, the end so far, the same after
    it waited for more by itself, or the end."""

    MORE = auto()
    NOT_YET = auto()
    END = auto()
    WAITED = auto()
    OVER = auto()


class StreamPlace(Protocol[T_co]):
    """One reader: where it stands, and what it has not handed out yet."""

    @property
    def cursor(self) -> str:
        """Where to go on later; it moves with what is taken."""
        ...

    def take(self) -> T_co | None:
        """The next at hand."""
        ...


class Source(StreamPlace[T_co], Protocol[T_co]):
    """A reader that looks for itself."""

    def look(self) -> Found:
        """Get what comes next from the store."""
        ...


class Looks(Generic[T, V]):
    """The source of what a job gives bit by bit. A look says what is new, and what another one would find: more at
    once, more later, or nothing; `view` is made of each that is taken, and `cursor` is where to go on behind it."""

    def __init__(
        self, look: Callable[[], tuple[Sequence[T], Found]], view: Callable[[T], V], cursor: Callable[[T], object]
    ) -> None:
        self._look = look
        self._view = view
        self._cursor_of = cursor
        self._at_hand: deque[T] = deque()
        self._is_over = False
        self.cursor = "0"

    def take(self) -> V | None:
        if not self._at_hand:
            return None
        taken = self._at_hand.popleft()
        self.cursor = str(self._cursor_of(taken))
        return self._view(taken)

    def look(self) -> Found:
        if self._is_over:
            return Found.OVER
        found, coming = self._look()
        self._is_over = coming is Found.OVER
        self._at_hand.extend(found)
        return Found.MORE if found else coming


class Stream(Iterator[T_co]):
    """One by one, until what is followed has ended, or with `follow=False` up to the last there is. That waits for
    nobody: a store in trouble raises at once, and what has no place yet comes behind the cursor, the next time.

    `cursor` is where to go on later: keep it together with what you did about what came, and hand it in as `after`.
    """

    def __init__(self, source: Source[T_co], *, follow: bool = True, clock: Clock | None = None) -> None:
        self._source = source
        self._follow = follow
        self._clock = clock or MachineClock()
        self._closed = threading.Event()

    @property
    def cursor(self) -> str:
        return self._source.cursor

    def close(self) -> None:
        """From any thread: the loop over it ends within a moment."""
        self._closed.set()

    def __next__(self) -> T_co:
        watch = Watch(None if self._follow else LONGEST_TURN, self._clock)
        while not self._closed.is_set():
            if (taken := self._source.take()) is not None:
                return taken
            try:
                found = self._source.look()
                watch.saw()
            except StoreError as error:
                if not self._follow:
                    raise
                watch.lost(error)
            else:
                if found is Found.MORE:
                    continue
                if found is Found.OVER or (found is Found.END and not self._follow):
                    break
                if found is Found.WAITED:
                    watch.rest()
            if (pause := watch.pause()) is None:
                break
            self._clock.wait(self._closed, pause)
        raise StopIteration


class AsyncStream(AsyncIterator[T]):
    """A Stream for coroutines: the loop is never held up. It opens at the first thing that is asked for."""

    def __init__(
        self, open_: Callable[[], Awaitable[StreamPlace[T]]], look: Callable[[Any], Awaitable[Found]]
    ) -> None:
        """`look` is given what `open_` gave."""
        self._open = open_
        self._look = look
        self._source: StreamPlace[T] | None = None

    @property
    def cursor(self) -> str | None:
        """Where to go on later; None before the first was asked for."""
        return None if self._source is None else self._source.cursor

    async def __anext__(self) -> T:
        import asyncio

        if self._source is None:
            self._source = await self._open()
        watch = Watch(None, MachineClock())
        while True:
            if (taken := self._source.take()) is not None:
                return taken
            try:
                found = await self._look(self._source)
                watch.saw()
            except StoreError as error:
                watch.lost(error)
            else:
                if found is Found.MORE:
                    continue
                if found is Found.OVER:
                    raise StopAsyncIteration
                if found is Found.WAITED:
                    watch.rest()
            await asyncio.sleep(watch.pause() or 0.0)
