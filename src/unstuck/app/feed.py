"""What an App gives out to follow: the feed of events, and what a job prints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from unstuck.app.engine import Engine
from unstuck.app.job import CancellableClock, Job
from unstuck.clock import MachineClock
from unstuck.model.errors import StoreError
from unstuck.model.payload import check_wording
from unstuck.observe.feed import Feed, Found, Reader, check_kinds
from unstuck.observe.wait import Watch
from unstuck.store.port import EVERY, FeedEvent, FeedFilter


class AsyncFeed(AsyncIterator[FeedEvent]):
    """A Feed for coroutines: the loop is never held up. It opens at the first event that is asked for."""

    def __init__(self, engine: Engine, after: str | None, wanted: dict[str, Any], *, follow: bool) -> None:
        self._engine = engine
        self._after = after
        self._wanted = wanted
        self._follow = follow
        self._reader: Reader | None = None

    @property
    def cursor(self) -> str | None:
        """Where to go on later; before the first event, where it was asked to begin."""
        return self._after if self._reader is None else self._reader.cursor

    async def __anext__(self) -> FeedEvent:
        if self._reader is None:
            self._reader = await self._engine.in_thread(lambda: reader(self._engine, self._after, **self._wanted))
        watch = Watch(None, MachineClock())
        while True:
            if (event := self._reader.take()) is not None:
                return event
            try:
                found = await self._engine.in_thread(self._reader.look)
                watch.saw()
            except StoreError as error:
                watch.lost(error)
            else:
                if found is Found.MORE:
                    continue
                if found is Found.END and not self._follow:
                    raise StopAsyncIteration
            await asyncio.sleep(watch.pause() or 0.0)


def feed(engine: Engine, after: str | None, *, follow: bool, **wanted: Any) -> Feed:
    return Feed(reader(engine, after, **wanted), follow=follow, clock=CancellableClock())


def reader(
    engine: Engine,
    after: str | None,
    *,
    tenant: str | None = None,
    kinds: str | Iterable[str] = (),
    job: Job[Any] | str | None = None,
    workflow: str | None = None,
) -> Reader:
    whose, one = check_wording(tenant, "tenant") or engine.settings.tenant, None
    if isinstance(job, Job):
        whose, one = job.tenant, job.id
    elif job is not None:
        one = engine.lookup(whose).job_id(job)
    wanted = FeedFilter(
        tenant=None if whose == EVERY else whose,
        kinds=check_kinds(kinds),
        job=one,
        workflow=check_wording(workflow, "workflow"),
    )
    return Reader(engine.store, after, wanted, kept=engine.settings.times.feed_retention)
