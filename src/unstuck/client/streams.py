"""Streams over HTTP: what comes bit by bit, read page by page with the operations that have a route. Of the feed each
page is a long poll: the server answers when there is something.

A look is written as a generator that yields a question and is told its view, so that functions and coroutines share
it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from unstuck.model.errors import UnstuckError
from unstuck.observe.stream import Found
from unstuck.operations import events, jobs
from unstuck.operations.kinds import number_of
from unstuck.operations.table import Operation
from unstuck.views.flow import FeedEventView, PartialView
from unstuck.views.jobs import LogView

V = TypeVar("V")

#: Of one look.
PAGE = 100
#: Seconds for which a look at the feed waits at the server.
PATIENT = 25.0


class Question(NamedTuple):
    """An operation and its arguments, to be asked about the tenant of the stream."""

    operation: Operation[Any, Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


Look = Generator[Question, Any, Found]


class PagedSource(Generic[V]):
    """Where one reader stands. `looks` asks for what is new and puts it `at_hand`, with the cursor behind each."""

    def __init__(self, cursor: str, looks: Callable[[PagedSource[V]], Look]) -> None:
        self.cursor = cursor
        self.at_hand: deque[tuple[V, str]] = deque()
        self._looks = looks

    def take(self) -> V | None:
        if not self.at_hand:
            return None
        taken, self.cursor = self.at_hand.popleft()
        return taken

    def looking(self) -> Look:
        return self._looks(self)


def source(
    operation: Operation[Any, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    patience: Callable[[], float] = lambda: PATIENT,
) -> PagedSource[Any]:
    """What follows by paging what this operation follows. `patience`: for how many seconds a look may wait for the
    server."""
    made = _SOURCES.get(operation.name)
    if made is None:
        raise UnstuckError(f"{operation.name} cannot be followed over HTTP yet; ask where the database is")
    return made(*args, **kwargs, **({"patience": patience} if made is _feed else {}))


def _feed(*, patience: Callable[[], float], after: str | None = "now", **wanted: Any) -> PagedSource[FeedEventView]:
    place = after or "start"

    def looks(source: PagedSource[FeedEventView]) -> Look:
        nonlocal place
        # "now" and "start" are no places to go on from: they become one at once, so that nothing is missed.
        is_named = place in ("now", "start")
        within = 0.0 if is_named else patience()
        page = yield Question(events.list_, (), {**wanted, "after": place, "limit": PAGE, "wait": within})
        place = page.next
        source.at_hand.extend((event, event.cursor) for event in page)
        if not page.items:
            source.cursor = place
        if page.items or is_named:
            return Found.MORE
        return Found.WAITED if within else Found.END

    return PagedSource(place, looks)


def _partials(job: str, *, after: Any = None) -> PagedSource[PartialView]:
    seen = number_of(after) or 0

    def looks(source: PagedSource[PartialView]) -> Look:
        nonlocal seen
        # The state first: what was given before the end is seen by this look, or it is not the last.
        ended = (yield Question(jobs.wait, (job,), {"timeout": 0})).state.is_final
        page = yield Question(jobs.partials, (job,), {"after": seen, "limit": PAGE})
        source.at_hand.extend((part, str(part.number)) for part in page)
        seen = page[-1].number if page.items else seen
        if page.items:
            return Found.MORE
        return Found.OVER if ended else Found.END

    return PagedSource(str(seen), looks)


def _logs(job: str, *, attempt: int | None = None, level: str | None = None) -> PagedSource[LogView]:
    over = False
    #: The newest attempt that said anything, and how many characters of it were handed out: its text only ever grows.
    newest, seen = 0, 0

    def looks(source: PagedSource[LogView]) -> Look:
        nonlocal over, newest, seen
        if over:
            return Found.OVER
        over = (yield Question(jobs.wait, (job,), {"timeout": 0})).state.is_final
        if over and attempt is not None:
            yield Question(jobs.logs, (job,), {"attempt": attempt})  # refused if it never was
        after: str | None = str(max(0, newest - 1) if attempt is None else attempt - 1)
        while after is not None:
            # Not by `attempt`: one that is yet to come is waited for.
            wanted = {"level": level, "after": after} | ({} if attempt is None else {"limit": 1})
            page = yield Question(jobs.logs, (job,), wanted)
            after, met = page.next if attempt is None else None, 0
            for piece in page:
                if piece.attempt > newest:
                    newest, seen, met = piece.attempt, 0, 0
                fresh = piece.text[max(0, seen - met) :] if piece.attempt == newest else ""
                met += len(piece.text)
                if fresh:
                    seen = met
                    source.at_hand.append((msgspec.structs.replace(piece, text=fresh), str(piece.attempt)))
        if source.at_hand:
            return Found.MORE
        return Found.OVER if over else Found.END

    return PagedSource("0", looks)


_SOURCES: dict[str, Callable[..., PagedSource[Any]]] = {
    "events.follow": _feed,
    "jobs.follow_logs": _logs,
    "jobs.follow_partials": _partials,
}


class AskedSource(Generic[V]):
    """A paged source with the function that asks its questions."""

    def __init__(self, paged: PagedSource[V], ask: Callable[[Question], Any]) -> None:
        self._paged = paged
        self._ask = ask

    @property
    def cursor(self) -> str:
        return self._paged.cursor

    def take(self) -> V | None:
        return self._paged.take()

    def look(self) -> Found:
        looking, told = self._paged.looking(), None
        try:
            while True:
                told = self._ask(looking.send(told))
        except StopIteration as end:
            found: Found = end.value
            return found


class AwaitedSource(Generic[V]):
    """The same with a coroutine that asks them."""

    def __init__(self, paged: PagedSource[V], ask: Callable[[Question], Awaitable[Any]]) -> None:
        self._paged = paged
        self._ask = ask

    @property
    def cursor(self) -> str:
        return self._paged.cursor

    def take(self) -> V | None:
        return self._paged.take()

    async def alook(self) -> Found:
        looking, told = self._paged.looking(), None
        try:
            while True:
                told = await self._ask(looking.send(told))
        except StopIteration as end:
            found: Found = end.value
            return found
