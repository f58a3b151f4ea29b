"""Live: what stays open until something happens: streams of events, long polls, waits for the end of a job.

Each is a Stay: `open` runs on a thread and finds out what is asked; `serve` runs on the loop and answers, now or
bit by bit. Between two things that happen it waits for its guest's `wake`, which the hub sets, and holds nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from unstuck.chance import SystemChance
from unstuck.model.errors import InvalidInput, StaleCursor, StoreError
from unstuck.model.lifecycle import ENDING
from unstuck.observe.feed import NOW, START, check_cursor, place_of
from unstuck.observe.stream import Found, Source
from unstuck.operations import events, jobs
from unstuck.operations.kinds import patience
from unstuck.operations.routes import PREFIX, HttpRoute, routes
from unstuck.operations.table import Caller, Operation
from unstuck.server import sse
from unstuck.server.endpoints import Endpoint, about, answer_of, asked_of, asker
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.guests import LEAVING, Guest
from unstuck.server.hub import CHUNK, FeedListener, HeardEvent, Hub
from unstuck.server.lanes import Lane
from unstuck.server.stay import Pieces, Stay
from unstuck.store.port import FeedFilter
from unstuck.views import Page
from unstuck.views.flow import FeedEventView

T = TypeVar("T")

#: Seconds after which a stream with nothing to tell says that it lives.
HEARTBEAT = 15.0
#: Milliseconds after which a reader that was cut comes again; those whom a leaving server sends away, up to twice so.
RETRY = 2000

_CHANCE = SystemChance()


class Live:
    """`lane`: where guests ask the database; with a place for each of them."""

    def __init__(self, hub: Hub, lane: Lane) -> None:
        self.hub = hub
        self.lane = lane

    def endpoints(self) -> list[Endpoint]:
        stays: dict[str, Callable[[Exchange], Stay | None]] = {
            "events.list": self._events,
            "jobs.wait": self._wait,
            "jobs.logs": self._of_job,
            "jobs.partials": self._of_job,
        }
        return [
            Endpoint(route.method, PREFIX + route.path, asker(route), stays=stay)
            for route, stay in ((routes()[name], stay) for name, stay in stays.items())
        ]

    def _events(self, exchange: Exchange) -> Stay | None:
        if exchange.wants_stream:
            return EventStream(self, exchange)
        return EventPoll(self, exchange) if _said(exchange, "wait") not in (None, "0") else None

    def _wait(self, exchange: Exchange) -> Stay | None:
        return JobWait(self, exchange) if _said(exchange, "timeout") != "0" else None

    def _of_job(self, exchange: Exchange) -> Stay | None:
        return JobStream(self, exchange) if exchange.wants_stream else None


#: Operations that also answer with a stream, and what follows what they list.
STREAMED: dict[str, Operation[Any, Any]] = {
    "events.list": events.follow,
    "jobs.logs": jobs.follow_logs,
    "jobs.partials": jobs.follow_partials,
}


def _said(exchange: Exchange, name: str) -> str | None:
    return next((text for each, text in exchange.query if each == name), None)


class EventStream:
    """The feed, from a cursor or from now on, for as long as somebody reads it."""

    def __init__(self, live: Live, exchange: Exchange) -> None:
        self._live = live
        self._exchange = exchange

    def open(self, caller: Caller) -> None:
        _, kwargs = _streamed(routes()["events.list"], caller, self._exchange, without=("limit", "wait"))
        self._after = cursor_of(self._exchange, kwargs.pop("after"), NOW)
        self._wanted = wanted(caller, kwargs)
        self._sees_all = caller.sees_all

    async def serve(self, guest: Guest) -> Pieces:
        listener = await self._live.hub.join(self._wanted, guest.wake, sees_all=self._sees_all)
        guest.at_end.append(lambda: self._live.hub.leave(listener))
        return Pieces(self._pieces(guest, listener))

    async def _pieces(self, guest: Guest, listener: FeedListener) -> AsyncGenerator[bytes, None]:
        yield sse.retry(RETRY)
        try:
            async for piece in self._told(guest, listener):
                yield piece
        except StoreError:
            yield sse.end("unavailable", RETRY)
            return
        yield _farewell(guest)

    async def _told(self, guest: Guest, listener: FeedListener) -> AsyncGenerator[bytes, None]:
        hub, cursor, is_known = self._live.hub, self._after, False
        if cursor == NOW:
            cursor = await hub.newest(listener)
        elif cursor == START:
            cursor, is_known = await self._live.lane.run(hub.oldest), True
        yield sse.mark(cursor)
        while guest.reason is None:
            if listener.is_behind and not listener.resume(cursor, is_known=is_known):
                try:
                    read = partial(hub.read, cursor, self._wanted, sees_all=self._sees_all)
                    heard, reached = await self._live.lane.run(read)
                except StaleCursor as stale:
                    cursor, is_known = stale.go_on, True
                    yield sse.reset(stale.reason, cursor)
                    continue
                yield b"".join(self._frames(heard)) + sse.mark(reached)
                cursor, is_known = reached, True
                continue
            guest.wake.clear()
            heard = listener.take(CHUNK)
            cursor = listener.cursor
            if heard:
                yield b"".join(self._frames(heard))
            elif not listener.is_behind and guest.reason is None and not await guest.wait(HEARTBEAT):
                yield sse.mark(listener.cursor)

    def _frames(self, heard: Iterable[HeardEvent]) -> Iterator[bytes]:
        for each in heard:
            yield sse.frame(each.text(sees_all=self._sees_all), each.event.cursor)


class EventPoll:
    """The next page of the feed: at once, or when something comes, or empty when the time is over."""

    def __init__(self, live: Live, exchange: Exchange) -> None:
        self._live = live
        self._exchange = exchange
        self._route = routes()["events.list"]

    def open(self, caller: Caller) -> None:
        _, kwargs = asked_of(self._route, caller, self._exchange)
        self._seconds = patience(kwargs.pop("wait"), "wait")
        self._limit = events.check_limit(kwargs.pop("limit"))
        self._after = cursor_of(self._exchange, kwargs.pop("after"), START)
        self._caller = about(caller, kwargs)
        self._asked = kwargs
        self._wanted = wanted(self._caller, dict(kwargs))

    async def serve(self, guest: Guest) -> HttpAnswer:
        listener = await self._live.hub.join(self._wanted, guest.wake)
        guest.at_end.append(lambda: self._live.hub.leave(listener))
        page = await self._page(guest, listener)
        guest.check()
        return answer_of(self._route, self._exchange, page)

    async def _page(self, guest: Guest, listener: FeedListener) -> Page[FeedEventView]:
        until = asyncio.get_running_loop().time() + self._seconds
        cursor, is_known = self._after, False
        if cursor == NOW:
            cursor = await self._live.hub.newest(listener)
        while True:
            if cursor == START or (listener.is_behind and not listener.resume(cursor, is_known=is_known)):
                page = await self._live.lane.run(partial(self._listed, cursor))
                if page.items:
                    return page
                cursor, is_known = str(page.next), True
                continue
            guest.wake.clear()
            heard = listener.take(self._limit)
            cursor = listener.cursor
            left = until - asyncio.get_running_loop().time()
            if heard or guest.reason is not None or left <= 0:
                return Page(items=tuple(each.view(sees_all=self._caller.sees_all) for each in heard), next=cursor)
            if not listener.is_behind:
                await guest.wait(left)

    def _listed(self, after: str) -> Page[FeedEventView]:
        return events.list_(self._caller, **self._asked, after=after, limit=self._limit)


class JobWait:
    """A job once it has ended, or as it stands when the time is over."""

    def __init__(self, live: Live, exchange: Exchange) -> None:
        self._live = live
        self._exchange = exchange
        self._route = routes()["jobs.wait"]

    def open(self, caller: Caller) -> None:
        args, kwargs = asked_of(self._route, caller, self._exchange)
        self._seconds = patience(kwargs.pop("timeout"))
        self._caller, self._job = about(caller, kwargs), args[0]
        self._seen = self._look()

    async def serve(self, guest: Guest) -> HttpAnswer:
        until = asyncio.get_running_loop().time() + self._seconds
        if not self._seen.state.is_final and self._seconds > 0:
            kinds = tuple(kind.value for kind in ENDING)
            listener = await self._live.hub.join(FeedFilter(kinds=kinds, job=self._seen.id), guest.wake)
            guest.at_end.append(lambda: self._live.hub.leave(listener))
            await self._ended(guest, listener, until)
        guest.check()
        return answer_of(self._route, self._exchange, self._seen)

    async def _ended(self, guest: Guest, listener: FeedListener, until: float) -> None:
        left = 1.0
        while not self._seen.state.is_final and guest.reason is None and left > 0:
            # It takes part before it looks: what is committed later wakes it.
            listener.resume(listener.desk.cursor)
            guest.wake.clear()
            self._seen = await self._live.lane.run(self._look)
            left = until - asyncio.get_running_loop().time()
            if not self._seen.state.is_final and guest.reason is None and left > 0 and not await guest.wait(left):
                self._seen, left = await self._live.lane.run(self._look), 0

    def _look(self) -> Any:
        return jobs.wait(self._caller, self._job, timeout=0)


class JobStream:
    """What a job prints, or gives of its result, until it has ended."""

    def __init__(self, live: Live, exchange: Exchange) -> None:
        self._live = live
        self._exchange = exchange
        self._source: Source[Any]

    def open(self, caller: Caller) -> None:
        is_logs = self._exchange.own_path.endswith("/logs")
        name, without = ("jobs.logs", ("limit", "after")) if is_logs else ("jobs.partials", ("limit",))
        args, kwargs = _streamed(routes()[name], caller, self._exchange, without)
        if not is_logs:
            kwargs["after"] = self._exchange.headers.get("last-event-id") or kwargs.get("after")
        who = about(caller, kwargs)
        self._source = STREAMED[name](who, *args, **kwargs)
        self._has_cursor = not is_logs
        self._job = jobs.wait(who, args[0], timeout=0).id

    async def serve(self, guest: Guest) -> Pieces:
        listener = await self._live.hub.join(FeedFilter(job=self._job), guest.wake, follows=self._job)
        guest.at_end.append(lambda: self._live.hub.leave(listener))
        return Pieces(self._pieces(guest, listener))

    async def _pieces(self, guest: Guest, listener: FeedListener) -> AsyncGenerator[bytes, None]:
        yield sse.retry(RETRY)
        while guest.reason is None:
            # It takes part before it looks: what is committed later wakes it.
            listener.resume(listener.desk.cursor)
            guest.wake.clear()
            try:
                found = await self._live.lane.run(self._source.look)
            except StoreError:
                yield sse.end("unavailable", RETRY)
                return
            if taken := [*self._taken()]:
                yield b"".join(taken)
            if found is Found.OVER:
                yield sse.end("over", RETRY)
                return
            if found is not Found.MORE and guest.reason is None and not await guest.wait(HEARTBEAT):
                yield sse.mark()
        yield _farewell(guest)

    def _taken(self) -> Iterator[bytes]:
        while (view := self._source.take()) is not None:
            yield sse.frame(sse.encoded(view), self._source.cursor if self._has_cursor else None)


def wanted(caller: Caller, kwargs: dict[str, Any]) -> FeedFilter:
    """The filter of what is asked; `tenant` is taken out of the arguments."""
    return events.wanted(events.follow.admitted(about(caller, kwargs)), **kwargs)


def cursor_of(exchange: Exchange, after: Any, default: str) -> str:
    """Where to begin: behind what a reader that was cut saw last, whatever its address says."""
    said = exchange.headers.get("last-event-id") or after
    cursor = default if said is None else check_cursor(said)
    if cursor not in (NOW, START):
        place_of(cursor)
    return cursor


def _streamed(
    route: HttpRoute, caller: Caller, exchange: Exchange, without: tuple[str, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for name in without:
        if _said(exchange, name) is not None:
            raise InvalidInput(f"a stream takes no {name}")
    args, kwargs = asked_of(route, caller, exchange)
    return args, {name: value for name, value in kwargs.items() if name not in without}


def _farewell(guest: Guest) -> bytes:
    """Those whom a leaving server sends away do not all come to the next one at once."""
    later = round(_CHANCE.fraction() * RETRY) if guest.reason == LEAVING else 0
    return sse.end(guest.reason or "", RETRY + later)
