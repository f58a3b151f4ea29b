"""Feed: follow every committed event from a durable cursor, in the one order that all readers see.

A reader also gives new events their positions, unless another reader is just doing it: a feed without readers costs
nothing. An event is seen only once it is committed, together with all that its transaction wrote.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import InvalidInput, quoted, told
from unstuck.model.news import OURS, is_kind
from unstuck.model.payload import MAX_NAME, check_wording
from unstuck.observe.stream import Found
from unstuck.store.port import FeedEvent, FeedFilter, Store

T = TypeVar("T")

#: In place of a cursor: all that is kept, and what comes from now on.
START = "start"
NOW = "now"
PAGE = 1000
_MOMENT = 0.01
_CURSOR = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})", re.ASCII)
#: How often a new reader lets another reader sequence first, before it takes the feed as it is.
_TURNS = 300


class Reader(Generic[T]):
    """A source of the feed's events, each as `shape` makes it."""

    def __init__(
        self,
        store: Store,
        after: str | None,
        wanted: FeedFilter,
        shape: Callable[[FeedEvent], T],
        *,
        kept: float,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._shape = shape
        self._wanted = wanted
        self._kept = kept
        self._ready: deque[FeedEvent] = deque()
        self.cursor = self._looked_to = self._begin(check_cursor(after), clock or MachineClock())

    def take(self) -> T | None:
        """The next event at hand; the cursor moves with what is taken, past unwanted ones only when none is left."""
        if not self._ready:
            return None
        event = self._ready.popleft()
        self.cursor = event.cursor if self._ready else self._looked_to
        return self._shape(event)

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


def check_cursor(after: Any) -> str:
    cursor = check_wording(after, "after")
    if cursor is not None and len(cursor) > MAX_NAME:
        raise InvalidInput(f"{quoted(cursor)} is not a cursor that a feed gave out")
    return START if cursor is None else cursor


def place_of(cursor: str) -> tuple[str, int]:
    """The feed that a cursor is of, and the position in it: those of one feed can be compared. InvalidInput."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInput(f"{quoted(cursor)} is not a cursor that a feed gave out")
    return found[1], int(found[2])


def check_kinds(kinds: Any) -> tuple[str, ...]:
    """One kind or several, by their names: ours, or such as may be published."""
    given = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(given, Iterable):
        raise InvalidInput(f"kinds={quoted(kinds)} is neither a kind of event nor several")
    found = tuple(str(kind) for kind in given)
    for kind in found:
        if not is_kind(kind):
            raise InvalidInput(f"there is no kind of event {told(kind)}; known: {', '.join(OURS)}")
    return found
