"""Guests: those who stay: streams, long polls, waits. How many there may be, and whether they still may.

A guest holds no thread and no connection to the database, only its place here. What its key may do is asked again
every moment, once for all guests with the same one; a key that was revoked ends them. When the server leaves, all of
them are told at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from starlette.types import Receive

from unstuck.clock import Clock
from unstuck.model.errors import StoreError, Unauthenticated
from unstuck.server.door import Admitted
from unstuck.server.exchange import Exchange
from unstuck.server.lanes import Lane
from unstuck.server.problems import HttpProblem

#: On one server, and of one key.
MOST_GUESTS = 4000
MOST_OF_KEY = 2000
#: Seconds between two questions whether a key still works; it may be known for three more (`keyring.FRESH`).
RECHECK = 1.5
#: Seconds after which a guest goes of whom nobody can say whether its key still works.
LONGEST_UNSURE = 5.0

#: Why a guest's stay ended.
GONE, REVOKED, LEAVING = "gone", "revoked", "leaving"


class Guest:
    """`wake` is set when its reason to go is there; whoever serves it waits for nothing else without it."""

    def __init__(self, exchange: Exchange, admitted: Admitted, now: float) -> None:
        self.exchange = exchange
        self.admitted = admitted
        self.known_at = now
        self.wake = asyncio.Event()
        self.reason: str | None = None
        self.at_end: list[Callable[[], None]] = []

    def end(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            self.wake.set()

    async def wait(self, seconds: float) -> bool:
        """Until it is woken; False: the time was over first."""
        try:
            async with asyncio.timeout(seconds):
                await self.wake.wait()
        except TimeoutError:
            return False
        return True

    def check(self) -> None:
        """Unauthenticated for one who may no longer be told."""
        if self.reason == REVOKED:
            raise Unauthenticated("the key by which this was asked no longer works")


class Guests:
    """`admit` says who somebody is, on a thread of `lane`; before many are asked about, `look_again` is told their
    keys."""

    def __init__(
        self,
        admit: Callable[[Exchange], Admitted],
        lane: Lane,
        clock: Clock,
        look_again: Callable[[Collection[str]], None] = lambda keys: None,
    ) -> None:
        self._admit = admit
        self._look_again = look_again
        self._lane = lane
        self._clock = clock
        self._count = 0
        self._of_key: Counter[str | None] = Counter()
        self._guests: dict[asyncio.AbstractEventLoop, set[Guest]] = {}
        self._watches: dict[asyncio.AbstractEventLoop, asyncio.Task[None]] = {}
        self._is_leaving = False

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the places there are; a refusal that says when to come again."""
        if self._is_leaving:
            raise HttpProblem("Overloaded", "the server is shutting down")
        if self._count >= MOST_GUESTS:
            raise HttpProblem("Overloaded", f"there are {MOST_GUESTS:,} streams and waits already", Retry_After="5")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    @asynccontextmanager
    async def welcome(self, exchange: Exchange, admitted: Admitted, receive: Receive) -> AsyncIterator[Guest]:
        loop, key = asyncio.get_running_loop(), admitted.counted_as
        if key is not None and self._of_key[key] >= MOST_OF_KEY:
            text = f"this key has {MOST_OF_KEY:,} streams and waits open already"
            raise HttpProblem("TooManyRequests", text, Retry_After="5")
        guest = Guest(exchange, admitted, self._clock.boot())
        here = self._guests.setdefault(loop, set())
        here.add(guest)
        self._of_key[key] += 1
        if self._is_leaving:
            guest.end(LEAVING)
        if loop not in self._watches:
            self._watches[loop] = loop.create_task(self._watch(loop, here))
        departure = loop.create_task(_await_departure(receive, guest))
        try:
            yield guest
        finally:
            departure.cancel()
            here.discard(guest)
            self._of_key[key] -= 1
            if not self._of_key[key]:
                del self._of_key[key]
            for last in guest.at_end:
                last()

    def leave(self) -> None:
        """End every stay; from any thread."""
        self._is_leaving = True
        for loop, here in list(self._guests.items()):
            try:
                loop.call_soon_threadsafe(_end_all, here)
            except RuntimeError:  # it has ended, and all who were on it
                pass

    # --- whether they still may ---------------------------------------------------------------------------------

    async def _watch(self, loop: asyncio.AbstractEventLoop, here: set[Guest]) -> None:
        """As long as there is anybody."""
        try:
            while here:
                await asyncio.sleep(RECHECK)
                alike: dict[object, list[Guest]] = {}
                for guest in here:
                    alike.setdefault(_credentials(guest), []).append(guest)
                firsts = {credentials: several[0] for credentials, several in alike.items()}
                for credentials, is_right in (await self._checked(firsts)).items():
                    self._judge(alike[credentials], is_right)
        finally:
            self._watches.pop(loop, None)
            if not here:
                self._guests.pop(loop, None)

    async def _checked(self, firsts: dict[object, Guest]) -> dict[object, bool | None]:
        try:
            return await self._lane.run(lambda: self._are_right(firsts))
        except HttpProblem:  # every thread is busy
            return dict.fromkeys(firsts)

    def _are_right(self, firsts: dict[object, Guest]) -> dict[object, bool | None]:
        with suppress(StoreError):  # whoever is asked about alone will tell
            self._look_again({key for guest in firsts.values() if (key := guest.admitted.caller.key)})
        return {name: self._is_right(guest) for name, guest in firsts.items()}

    def _is_right(self, guest: Guest) -> bool | None:
        """Whether it may ask what it asked when it came; None: nobody can say."""
        try:
            return self._admit(guest.exchange).caller == guest.admitted.caller
        except StoreError:
            return None
        except Exception:
            return False

    def _judge(self, guests: list[Guest], is_right: bool | None) -> None:
        now = self._clock.boot()
        for guest in guests:
            if is_right:
                guest.known_at = now
            elif is_right is False or now - guest.known_at > LONGEST_UNSURE:
                guest.end(REVOKED)


def _credentials(guest: Guest) -> object:
    """The key that it shows, or that gave it its ticket; whoever shows none is asked about alone: the program that we
    are mounted in may know it by anything."""
    shown, admitted = guest.exchange.headers.get("authorization") or guest.exchange.ticketed, guest.admitted
    if (shown is not None and admitted.caller.key) or admitted.counted_as is None:
        return shown, admitted.caller.by
    return guest


def _end_all(guests: set[Guest]) -> None:
    for guest in list(guests):
        guest.end(LEAVING)


async def _await_departure(receive: Receive, guest: Guest) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    guest.end(GONE)
