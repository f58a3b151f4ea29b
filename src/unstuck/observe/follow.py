"""Follow: what a job gives away bit by bit, as it comes, until the job has ended.

A look says what is new, and whether that was all. It reads the state of the job first: what an attempt writes under
its fence is there before its job has ended, so this look sees it, or is not the last.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import StoreError
from unstuck.observe.wait import Watch

T = TypeVar("T")


def follow(look: Callable[[], tuple[Sequence[T], bool]], clock: Clock | None = None) -> Iterator[T]:
    """Looks again soon while things come, less often while they do not; a store that is away is waited for."""
    clock = clock or MachineClock()
    watch, never = Watch(None, clock), threading.Event()
    while True:
        try:
            found, ended = look()
        except StoreError as error:
            watch.lost(error)
        else:
            yield from found
            if ended:
                return
            watch = Watch(None, clock) if found else watch
            watch.saw()
        clock.wait(never, watch.pause() or 0.0)


async def afollow(look: Callable[[], Awaitable[tuple[Sequence[T], bool]]]) -> AsyncIterator[T]:
    """The same without blocking the loop."""
    import asyncio

    clock = MachineClock()
    watch = Watch(None, clock)
    while True:
        try:
            found, ended = await look()
        except StoreError as error:
            watch.lost(error)
        else:
            for one in found:
                yield one
            if ended:
                return
            watch = Watch(None, clock) if found else watch
            watch.saw()
        await asyncio.sleep(watch.pause() or 0.0)
