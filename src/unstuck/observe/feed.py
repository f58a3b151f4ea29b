"""Feed: follow every committed event from a durable cursor, in the one order that all readers see.

A reader also gives new events their positions, unless another reader is just doing it: a feed without readers costs
nothing. An event is seen only once it is committed, together with all that its transaction wrote.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Any

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import InvalidInput, StoreError, quoted, told
from unstuck.model.lifecycle import EventKind
from unstuck.model.payload import MAX_NAME, check_wording
from unstuck.observe.wait import Watch
from unstuck.store.port import FeedEvent, FeedFilter, Store

#: In place of a cursor: all that is kept, and what comes from now on.
START = "start"
NOW = "now"
PAGE = 1000
_MOMENT = 0.01
#: How often a new reader lets another reader sequence first, before it takes the feed as it is.
_TURNS = 300


class Found(Enum):
    """What a look found: something, nothing while another reader is just sequencing, or the end so far."""

    MORE = auto()
    NOT_YET = auto()
    END = auto()


class Reader:
    """One reader: where it stands, what it wants, what it has not handed out yet. Both colours of Feed ask it."""

    def __init__(
        self, store: Store, after: str | None, wanted: FeedFilter, *, kept: float, clock: Clock | None = None
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._kept = kept
        self._ready: deque[FeedEvent] = deque()
        self.cursor = self._looked_to = self._begin(check_cursor(after), clock or MachineClock())

    def take(self) -> FeedEvent | None:
        """The next event at hand; the cursor moves with what is taken, past unwanted ones only when none is left."""
        if not self._ready:
            return None
        event = self._ready.popleft()
        self.cursor = event.cursor if self._ready else self._looked_to
        return event

    def look(self) -> Found:
        """Get what comes next."""
        page = self._store.feed(self._looked_to, self._wanted, PAGE)
        taken = 0
        if page.is_last and not page.events:
            taken = self._store.sequence(self._kept)
            page = page if taken == 0 else self._store.feed(page.cursor, self._wanted, PAGE)
        self._looked_to = page.cursor
        self._ready.extend(page.events)
        if not self._ready:
            self.cursor = self._looked_to
        if page.events or not page.is_last or taken > 0:
            return Found.MORE
        return Found.END if taken == 0 else Found.NOT_YET

    def _begin(self, after: str, clock: Clock) -> str:
        if after == START:
            return self._store.feed_bounds().oldest
        if after != NOW:
            return after
        never, turns = threading.Event(), 0
        while (taken := self._store.sequence(self._kept)) != 0 and turns < _TURNS:
            if taken < 0:
                turns += 1
                clock.wait(never, _MOMENT)
        return self._store.feed_bounds().newest


class Feed(Iterator[FeedEvent]):
    """Events one by one, for ever, or with `follow=False` up to the last there is. `cursor` is where to go on later:
    keep it together with what you did about the event, and hand it in as `after`."""

    def __init__(self, reader: Reader, *, follow: bool = True, clock: Clock | None = None) -> None:
        self._reader = reader
        self._follow = follow
        self._clock = clock or MachineClock()
        self._closed = threading.Event()

    @property
    def cursor(self) -> str:
        return self._reader.cursor

    def close(self) -> None:
        """From any thread: the loop over it ends within a moment."""
        self._closed.set()

    def __next__(self) -> FeedEvent:
        watch = Watch(None, self._clock)
        while not self._closed.is_set():
            if (event := self._reader.take()) is not None:
                return event
            try:
                found = self._reader.look()
                watch.saw()
            except StoreError as error:
                watch.lost(error)
            else:
                if found is Found.MORE:
                    continue
                if found is Found.END and not self._follow:
                    break
            self._clock.wait(self._closed, watch.pause() or 0.0)
        raise StopIteration


def check_cursor(after: Any) -> str:
    cursor = check_wording(after, "after")
    if cursor is not None and len(cursor) > MAX_NAME:
        raise InvalidInput(f"{quoted(cursor)} is not a cursor that a feed gave out")
    return START if cursor is None else cursor


def check_kinds(kinds: Any) -> tuple[str, ...]:
    """One kind or several, by their names."""
    given = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(given, Iterable):
        raise InvalidInput(f"kinds={quoted(kinds)} is neither a kind of event nor several")
    known = {kind.value for kind in EventKind}
    found = tuple(str(kind) for kind in given)
    for kind in found:
        if kind not in known:
            raise InvalidInput(f"there is no kind of event {told(kind)}; known: {', '.join(EventKind)}")
    return found
