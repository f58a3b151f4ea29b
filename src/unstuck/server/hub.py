"""Hub: one reader of the feed for everybody who listens in this process, however many they are.

Theory of operation. One thread looks at the whole feed while somebody listens, and tells what is new to the desk of
each event loop (a server has one). All else happens on that loop, without locks: the desk matches events against
filters, once per filter, and puts them into the listeners' buffers. A desk stands at a cursor: everything up to it
has been told. Whoever joins takes part from there, so nothing falls between what is read before and what is told
after.

A listener resumes at a cursor. What the desk still remembers it gets from there; what is older, and what is ahead of
the desk because another server gave it out, is read from the store by whoever listens. A listener whose buffer is
full is behind: its buffer is let go, and it resumes later, from its own cursor, in the same way. So nobody's slowness
costs more than a buffer, and none of it loses an event.

What jobs print and give of their results is no event. Of the jobs that somebody follows the thread asks, now and
then and for all of them at once, how much there is by now; whoever follows one with more is woken, and reads it.

Nobody listens: nothing is read.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from unstuck.clock import Clock
from unstuck.model.errors import StaleCursor, StoreError, StoreUnavailable
from unstuck.model.guard import EVERY
from unstuck.model.redaction import Redactions
from unstuck.observe.feed import NOW, Reader, place_of
from unstuck.observe.stream import Found
from unstuck.server.sse import encoded
from unstuck.store.port import FeedEvent, FeedFilter, OutputMark, Store
from unstuck.telemetry import logger
from unstuck.views.flow import FeedEventView

N = TypeVar("N")
W = TypeVar("W")

#: Seconds between two looks: after news, and the longest while all is quiet.
SOON = 0.02
LATE = 0.1
GROWTH = 1.3
#: Seconds from one look to the next at least, unless there was more than was told: many changes are one look.
GAP = 0.02
#: Seconds until the next look at a store that is away.
AWAY = 1.0
#: Seconds for which it goes on looking after the last listener left: a long poll is back in a moment.
LINGER = 5.0
#: Seconds in which the feed must have been looked at for whoever joins.
LONGEST_START = 5.0
#: Seconds between two questions whether followed jobs have printed or given something, and about how many one is.
OUTPUT_EVERY = 0.2
MOST_JOBS_ASKED = 500
#: Events that are told at a time, and that a desk remembers.
CHUNK = 200
RECENT = 500
#: Bytes that wait for one listener.
MOST_BYTES = 256 << 10
#: Seconds for which the reader waits for listeners to take what they have, and of all its time this share: who takes
#: everything a little late holds up all others otherwise, with every chunk. How often it looks whether they did.
LONGEST_ROOM = 0.2
SHARE_OF_ROOM = 0.25
_ROOM_EVERY = 0.005


class HeardEvent:
    """An event of the feed, and its JSON, made once for all who want it. `hidden`: what only admins see of it."""

    __slots__ = ("_hidden", "_shown", "_whole", "event", "place")

    def __init__(self, event: FeedEvent, hidden: Redactions | None = None) -> None:
        self.event = event
        self.place = _place(event.cursor)
        self._hidden = hidden
        self._whole: bytes | None = None
        self._shown: bytes | None = None

    def view(self, *, sees_all: bool) -> FeedEventView:
        return FeedEventView.of(self.event, None if sees_all else self._hidden)

    def text(self, *, sees_all: bool) -> bytes:
        if sees_all or not self._hidden:
            if self._whole is None:
                self._whole = encoded(self.view(sees_all=True))
            return self._whole
        if self._shown is None:
            self._shown = encoded(self.view(sees_all=False))
        return self._shown


class FeedListener:
    """One who listens, on the loop of its desk. `wake` is set when there is something to take, or to do."""

    def __init__(
        self, desk: Desk, wanted: FeedFilter, wake: asyncio.Event, sees_all: bool, follows: str | None = None
    ) -> None:
        self.desk = desk
        self.wanted = wanted
        self.sees_all = sees_all
        #: The job whose output it follows: what that prints or gives wakes it too.
        self.follows = follows
        #: It is told nothing until it resumes.
        self.is_behind = True
        #: It did not take what it had in time: nobody waits for it until it has.
        self.is_slow = False
        self._wake = wake
        self._heard: deque[HeardEvent] = deque()
        self._bytes = 0
        self._seen = ""
        self._place = 0

    @property
    def cursor(self) -> str:
        """Where to go on behind all that was taken; where nothing is left to take, behind all that was told."""
        is_up_to_date = not self.is_behind and not self._heard and self.desk.place >= self._place
        return self.desk.cursor if is_up_to_date else self._seen

    @property
    def is_full(self) -> bool:
        return self._bytes > MOST_BYTES // 2

    def resume(self, cursor: str, *, is_known: bool = False) -> bool:
        """Take part from this cursor on. False: it is too old for that, more came since than a buffer holds, or it is
        ahead of the desk and the store has not said that it knows it (`is_known`); then read on from the store."""
        if not self.desk.remembers(cursor, is_known):
            return False
        self._seen, self._place = cursor, _place(cursor)
        self._let_go()
        self.is_behind = False
        for heard in self.desk.since(self._place):
            if self.wanted.admits(heard.event):
                self.put(heard)
        return not self.is_behind

    def put(self, heard: HeardEvent) -> None:
        if self.is_behind or heard.place <= self._place:
            return
        self._heard.append(heard)
        self._bytes += self._size(heard)
        if self._bytes > MOST_BYTES:
            self.fall_behind()
        self._wake.set()

    def take(self, most: int) -> list[HeardEvent]:
        """The next at hand, at most so many."""
        found = [self._heard.popleft() for _ in range(min(most, len(self._heard)))]
        self._bytes -= sum(map(self._size, found))
        if found:
            self._seen, self._place = found[-1].event.cursor, found[-1].place
        if not self._heard:
            self.is_slow = False
        return found

    def stir(self) -> None:
        """There is something to look at."""
        self._wake.set()

    def fall_behind(self) -> None:
        self._let_go()
        self.is_behind = True
        self._wake.set()

    def _size(self, heard: HeardEvent) -> int:
        return len(heard.text(sees_all=self.sees_all))

    def _let_go(self) -> None:
        self._heard.clear()
        self._bytes = 0


class Desk:
    """What the listeners of one event loop share. Only that loop touches it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.cursor = ""
        self.place = -1
        self.begun = asyncio.Event()
        self._floor = 0
        self._recent: deque[HeardEvent] = deque()
        self._listeners: dict[FeedFilter, set[FeedListener]] = {}
        #: The filters that name a job, by that; the others by their tenant, None: those of all tenants.
        self._by_job: dict[str, set[FeedFilter]] = {}
        self._by_tenant: dict[str | None, set[FeedFilter]] = {}
        #: Those who follow the output of a job, by that.
        self._followers: dict[str, set[FeedListener]] = {}
        #: Seconds for which listeners may be waited for, and since when so many.
        self._room, self._room_at = LONGEST_ROOM, loop.time()

    def __bool__(self) -> bool:
        """Whether anybody listens; also asked by the hub's thread."""
        return bool(self._listeners)

    def add(self, listener: FeedListener) -> None:
        wanted = listener.wanted
        self._listeners.setdefault(wanted, set()).add(listener)
        if listener.follows is not None:
            self._followers.setdefault(listener.follows, set()).add(listener)
        if wanted.job is not None:
            self._by_job.setdefault(wanted.job, set()).add(wanted)
        else:
            self._by_tenant.setdefault(wanted.tenant, set()).add(wanted)

    def remove(self, listener: FeedListener) -> None:
        if listener.follows is not None and listener.follows in self._followers:
            _discard(self._followers, listener.follows, listener)
        wanted, left = listener.wanted, self._listeners.get(listener.wanted, set())
        left.discard(listener)
        if left:
            return
        self._listeners.pop(wanted, None)
        if wanted.job is not None:
            _discard(self._by_job, wanted.job, wanted)
        else:
            _discard(self._by_tenant, wanted.tenant, wanted)

    @property
    def followed(self) -> list[str]:
        """The jobs whose output somebody follows."""
        return list(self._followers)

    def stir(self, jobs: Iterable[str]) -> None:
        """These have printed or given something."""
        for job in jobs:
            for listener in self._followers.get(job, ()):
                listener.stir()

    def begin(self, cursor: str) -> None:
        """From here on everything is told. Whoever took part before is behind."""
        self.cursor, self.place = cursor, _place(cursor)
        self._floor = self.place
        self._recent.clear()
        for listener in self._everybody():
            listener.fall_behind()
        self.begun.set()

    def remembers(self, cursor: str, is_known: bool) -> bool:
        era, place = place_of(cursor)
        return era == place_of(self.cursor)[0] and self._floor <= place and (is_known or place <= self.place)

    def since(self, place: int) -> Iterator[HeardEvent]:
        return (heard for heard in self._recent if heard.place > place)

    def tell(self, heard: Sequence[HeardEvent], cursor: str, done: Callable[[], object]) -> None:
        """`done` is called once those who were told have room again, or have had time enough."""
        told: set[FeedListener] = set()
        for each in heard:
            self._recent.append(each)
            for wanted in self._candidates(each.event):
                if wanted.admits(each.event):
                    told |= self._listeners[wanted]
                    for listener in self._listeners[wanted]:
                        listener.put(each)
        self.cursor, self.place = cursor, _place(cursor)
        while len(self._recent) > RECENT:
            self._floor = self._recent.popleft().place
        now = self.loop.time()
        room = min(LONGEST_ROOM, self._room + SHARE_OF_ROOM * (now - self._room_at))
        self._await_room(told, done, now + room)

    def _await_room(self, told: Iterable[FeedListener], done: Callable[[], object], until: float) -> None:
        full = [listener for listener in told if listener.is_full and not listener.is_slow]
        now = self.loop.time()
        if full and now < until:
            self.loop.call_later(_ROOM_EVERY, self._await_room, full, done, until)
            return
        for listener in full:
            listener.is_slow = True
        self._room, self._room_at = max(0.0, until - now), now
        done()

    def _candidates(self, event: FeedEvent) -> Iterator[FeedFilter]:
        if event.job is not None:
            yield from self._by_job.get(event.job, ())
        if event.tenant == EVERY:
            yield from (wanted for several in self._by_tenant.values() for wanted in several)
            return
        if event.tenant is not None:
            yield from self._by_tenant.get(event.tenant, ())
        yield from self._by_tenant.get(None, ())

    def _everybody(self) -> Iterator[FeedListener]:
        return (listener for several in self._listeners.values() for listener in several)


class Hub:
    """`store`: asked in each round, as a program may open its own anew. `kept`: for how many seconds the feed is."""

    def __init__(self, store: Callable[[], Store], kept: Callable[[], float], clock: Clock) -> None:
        self._store = store
        self._kept = kept
        self._clock = clock
        self._lock = threading.Lock()
        self._desks: dict[asyncio.AbstractEventLoop, Desk] = {}
        #: Who wants to know when all that was committed before has been told.
        self._asked: list[tuple[Desk, asyncio.Future[None]]] = []
        self._thread: threading.Thread | None = None
        self._hurry = threading.Event()
        self._is_closed = False
        # Only its thread knows these: where each desk has been told to stand, and whether the store is away.
        self._reader: Reader[FeedEvent] | None = None
        self._standing: dict[Desk, str] = {}
        self._is_away = False
        self._has_more = False
        self._never = threading.Event()
        #: What was known last of the output of followed jobs, and when it was asked.
        self._output: dict[str, OutputMark] = {}
        self._output_at = 0.0

    async def join(
        self, wanted: FeedFilter, wake: asyncio.Event, *, sees_all: bool = False, follows: str | None = None
    ) -> FeedListener:
        """StoreUnavailable if the feed cannot be looked at. Whoever joins leaves again. `follows`: a job of which it
        is also woken when that prints, or gives a part of its result."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if (desk := self._desks.get(loop)) is None:
                desk = self._desks[loop] = Desk(loop)
            listener = FeedListener(desk, wanted, wake, sees_all, follows)
            desk.add(listener)
            self._start()
        try:
            async with asyncio.timeout(LONGEST_START):
                await desk.begun.wait()
        except TimeoutError:
            self.leave(listener)
            raise StoreUnavailable("the feed cannot be read now") from None
        except BaseException:
            self.leave(listener)
            raise
        return listener

    def leave(self, listener: FeedListener) -> None:
        with self._lock:
            listener.desk.remove(listener)

    async def newest(self, listener: FeedListener) -> str:
        """The cursor behind all that was committed before this was asked."""
        future: asyncio.Future[None] = listener.desk.loop.create_future()
        with self._lock:
            self._asked.append((listener.desk, future))
        self._hurry.set()
        try:
            async with asyncio.timeout(LONGEST_START):
                await future
        except TimeoutError:
            raise StoreUnavailable("the feed cannot be read now") from None
        return listener.desk.cursor

    def read(self, cursor: str, wanted: FeedFilter, *, sees_all: bool) -> tuple[list[HeardEvent], str]:
        """What the store has behind a cursor, as much as may wait for one listener, and how far that reaches; on a
        thread. StaleCursor."""
        page = self._store().feed(cursor, wanted, CHUNK)
        taken: list[HeardEvent] = []
        held = 0
        for heard in self._heard(page.events):
            if held > MOST_BYTES:
                return taken, taken[-1].event.cursor
            taken.append(heard)
            held += len(heard.text(sees_all=sees_all))
        return taken, page.cursor

    def _heard(self, events: Sequence[FeedEvent]) -> list[HeardEvent]:
        """What is hidden of what jobs publish is asked each time: a workflow may have said so just now."""
        hides = any(event.by is not None and event.workflow is not None for event in events)
        hidden = self._store().redactions() if hides else None
        return [HeardEvent(event, hidden) for event in events]

    def oldest(self) -> str:
        return self._store().feed_bounds().oldest

    def hurry(self) -> None:
        """Something was just committed: look at once. From any thread."""
        if self._desks:
            self._hurry.set()

    def close(self) -> None:
        self._is_closed = True
        self._hurry.set()
        if self._thread is not None:
            self._thread.join(LONGEST_START)

    # --- its thread ---------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if not self._is_closed and (self._thread is None or not self._thread.is_alive()):
            self._reader = None
            self._output.clear()
            self._thread = threading.Thread(target=self._run, name="unstuck-hub", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        pause, heard_at, looked_at = SOON, self._clock.boot(), 0.0
        while True:
            now = self._clock.boot()
            with self._lock:
                if any(self._desks.values()):
                    heard_at = now
                if self._is_closed or now - heard_at > LINGER:
                    self._desks.clear()
                    self._thread = None
                    return
            if not self._has_more:
                self._clock.wait(self._never, looked_at + GAP - now)
            looked_at = self._clock.boot()
            with self._lock:
                asked, self._asked = self._asked, []
            found = self._looked()
            self._answer(asked, is_all=found is Found.END)
            if found is Found.MORE:
                pause = SOON
            elif self._clock.wait(self._hurry, AWAY if found is None else pause):
                self._hurry.clear()
                pause = SOON
            else:
                pause = min(LATE, pause * GROWTH)

    def _looked(self) -> Found | None:
        """What one look found, of which everybody has been told; None: the store is away."""
        try:
            found = self._look()
        except StaleCursor:  # the database is another one now, or an older one
            self._reader = None
            return Found.MORE
        except Exception as error:
            if not self._is_away:
                is_known = isinstance(error, StoreError)
                logger.warning("the feed cannot be read: %s", error, exc_info=None if is_known else error)
            self._is_away = True
            self._reader = None  # what it had read and nobody was told, everybody reads from their own cursors
            return None
        self._is_away = False
        return found

    def _look(self) -> Found:
        if self._reader is None:
            self._reader = Reader(self._store(), NOW, FeedFilter(), _itself, kept=self._kept(), clock=self._clock)
            self._standing.clear()
        with self._lock:
            desks = list(self._desks.values())
        for desk in desks:
            if self._standing.get(desk) is None:
                self._begin(desk, self._reader.cursor)
        found = self._reader.look()
        self._has_more = is_last = False
        while not is_last:
            events: list[FeedEvent] = []
            while len(events) < CHUNK and (event := self._reader.take()) is not None:
                events.append(event)
            is_last, heard = len(events) < CHUNK, self._heard(events)
            self._has_more |= not is_last
            for desk in desks:
                self._tell(desk, heard, self._reader.cursor)
        self._look_at_output(desks)
        return found

    def _look_at_output(self, desks: Sequence[Desk]) -> None:
        """One question about all jobs whose output is followed, however many follow it. Of a job that was not asked
        about before it is not known what its followers have seen: they look."""
        now = self._clock.boot()
        if now - self._output_at < OUTPUT_EVERY:
            return
        with self._lock:
            followed = sorted({job for desk in desks for job in desk.followed})
        found: dict[str, OutputMark] = {}
        for first in range(0, len(followed), MOST_JOBS_ASKED):
            found |= self._store().output_marks(followed[first : first + MOST_JOBS_ASKED])
        changed = [job for job, mark in found.items() if mark != self._output.get(job)]
        self._output, self._output_at = found, now
        if changed:
            for desk in desks:
                self._post(desk, partial(desk.stir, changed))

    def _begin(self, desk: Desk, cursor: str) -> None:
        if self._post(desk, lambda: desk.begin(cursor)):
            self._standing[desk] = cursor

    def _tell(self, desk: Desk, heard: Sequence[HeardEvent], cursor: str) -> None:
        """What it says is waited for: a loop with much to do is not given more."""
        if self._standing.get(desk) in (None, cursor) and not heard:
            return
        done = threading.Event()
        if self._post(desk, lambda: desk.tell(heard, cursor, done.set)):
            self._standing[desk] = cursor
            self._clock.wait(done, LONGEST_START)

    def _answer(self, asked: list[tuple[Desk, asyncio.Future[None]]], *, is_all: bool) -> None:
        """Those who wanted to know of a look to the end; if it was none, they go on waiting."""
        if not is_all:
            with self._lock:
                self._asked = asked + self._asked
            return
        for desk, future in asked:
            self._post(desk, partial(_finish, future))

    def _post(self, desk: Desk, work: Callable[[], object]) -> bool:
        """Let the desk's loop do it; False: that loop has ended, and the desk with it."""
        try:
            desk.loop.call_soon_threadsafe(work)
        except RuntimeError:
            with self._lock:
                self._desks.pop(desk.loop, None)
            self._standing.pop(desk, None)
            return False
        return True


def _itself(event: FeedEvent) -> FeedEvent:
    return event


def _place(cursor: str) -> int:
    return place_of(cursor)[1]


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _discard(index: dict[N, set[W]], name: N, wanted: W) -> None:
    index[name].discard(wanted)
    if not index[name]:
        del index[name]
