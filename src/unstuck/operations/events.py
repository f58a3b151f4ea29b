"""Events: what happens, in the one order that every reader sees; what is published; and events sent to jobs."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

from unstuck.clock import MachineClock
from unstuck.model.errors import (
    AmbiguousJob,
    EventConflict,
    NotPermitted,
    NotWaiting,
    StaleCursor,
    UnknownJob,
)
from unstuck.model.payload import check_wording
from unstuck.model.waits import WaitKind
from unstuck.observe.feed import START, Reader, check_kinds
from unstuck.observe.stream import Source, Stream
from unstuck.observe.wait import Watch
from unstuck.operations.bounds import bounded, size_of_news
from unstuck.operations.kinds import Duration, patience, seconds, whole_number
from unstuck.operations.table import OPERATOR, READER, SUBMITTER, Caller, operation
from unstuck.store.port import FeedFilter
from unstuck.views import Page
from unstuck.views.flow import FeedEventView, PublishedView, SentView, WaitView

MOST_LISTED = 100_000


@operation(role=READER, limited="kept", whose="any", paged="after", errors=(UnknownJob, AmbiguousJob, StaleCursor))
def list_(
    caller: Caller,
    *,
    after: str | None = None,
    kinds: str | Iterable[str] = (),
    job: str | None = None,
    workflow: str | None = None,
    target: str | None = None,
    topic: str | None = None,
    limit: int = 100,
    wait: Duration = 0.0,
) -> Page[FeedEventView]:
    """What is kept of the feed, the oldest first, from the beginning or behind a cursor. `next` is where to go on,
    also where nothing follows yet; a page of large events is short. `wait`: where nothing does, for so many seconds,
    60 at most, until it does."""
    most, longest = check_limit(limit), patience(wait, "wait")
    stream = Stream(
        _reader(caller, after or START, wanted(caller, kinds, job, workflow, target, topic)), follow=False
    )
    clock, never = MachineClock(), threading.Event()
    items, watch = _page(stream, most), Watch(longest, clock)
    while not items and (pause := watch.pause()) is not None:
        clock.wait(never, pause)
        items = _page(stream, most)
    return Page(items=items, next=stream.cursor)


@operation(role=READER, limited="kept", effect="stream", whose="any", errors=(UnknownJob, AmbiguousJob, StaleCursor))
def follow(
    caller: Caller,
    *,
    after: str | None = "now",
    kinds: str | Iterable[str] = (),
    job: str | None = None,
    workflow: str | None = None,
    target: str | None = None,
    topic: str | None = None,
) -> Source[FeedEventView]:
    """Every event as it is committed, once and in order: from now on, from "start" (all that is kept), or behind an
    earlier event's cursor."""
    return _reader(caller, after or START, wanted(caller, kinds, job, workflow, target, topic))


@operation(
    role=OPERATOR,
    limited="kept",
    effect="change",
    repeat="key",
    audited="events.send",
    errors=(UnknownJob, AmbiguousJob, NotWaiting, EventConflict),
    route="POST /events",
)
def send(
    caller: Caller,
    event: str,
    payload: Any = None,
    *,
    job: str | None = None,
    topic: str | None = None,
    id: str | None = None,
) -> SentView:
    """Send an event to a job, or to a job that waits on a topic. It answers one wait: one that is open, else the next
    that begins within 24 hours. The payload may be what a result may be. Sent again under the same `id`
    it counts once. NotWaiting for a job that has ended."""
    if topic is not None and caller.within is not None:
        raise NotPermitted(f"any job may wait on a topic, and the key of {caller.by} names some: send it to a job")
    ident = None if job is None else caller.lookup.job(job).id
    sent = caller.flow.signal(event, payload, job=ident, topic=topic, id=id)
    awaited = () if ident is None or sent.job is not None else _awaited(caller, ident)
    return SentView(
        event=event,
        job=ident,
        topic=topic,
        answered=sent.job,
        number=sent.number,
        repeated=sent.is_repeat,
        awaited=awaited,
    )


@operation(
    role=SUBMITTER,
    limited="kept",
    effect="change",
    repeat="key",
    errors=(UnknownJob, AmbiguousJob),
)
def publish(
    caller: Caller,
    kind: str,
    data: Any = None,
    *,
    topic: str | None = None,
    job: str | None = None,
    ttl: Duration | None = None,
    id: str | None = None,
) -> PublishedView:
    """Tell everybody who follows the feed. `kind` is a word of yours, `data` an object of up to 16 KiB of JSON; both
    may be about a job. It is kept for `ttl`, or as long as the feed. Published again under the same `id` it
    counts once."""
    if job is None and caller.within is not None:
        raise NotPermitted(f"the key of {caller.by} names queues or workflows: name the job that it is about")
    ident = None if job is None else caller.lookup.job(job).id
    until = None if ttl is None else seconds(ttl, "ttl")
    done = caller.flow.publish(kind, data, topic=topic, ttl=until, job=ident, id=id)
    return PublishedView(
        kind=kind,
        tenant=caller.one,
        topic=topic,
        job=ident,
        expires_at=done.expires_at,
        repeated=done.is_repeat,
    )


def _page(stream: Stream[FeedEventView], most: int) -> tuple[FeedEventView, ...]:
    """The cursor moves with what is taken, so a page that is short because of its size goes on behind it."""
    return tuple(bounded(stream, most, size_of_news)[0])


def check_limit(limit: Any) -> int:
    return whole_number(limit, "limit", 1, MOST_LISTED)


def _awaited(caller: Caller, job: str) -> tuple[WaitView, ...]:
    """The events that a job waits for now: the one that was sent may be a slip of the pen."""
    waits = caller.store.waits_of(caller.one, job)
    return tuple(WaitView.of(w) for w in waits if w.answer is None and w.wait.kind is WaitKind.EVENT)


def wanted(
    caller: Caller,
    kinds: str | Iterable[str] = (),
    job: str | None = None,
    workflow: str | None = None,
    target: str | None = None,
    topic: str | None = None,
) -> FeedFilter:
    """What this caller asks for of the feed, and may see."""
    return FeedFilter(
        tenant=caller.listed,
        kinds=check_kinds(kinds),
        job=None if job is None else caller.of_job(job).lookup.job(job).id,
        workflow=check_wording(workflow, "workflow"),
        target=check_wording(target, "target"),
        topic=check_wording(topic, "topic"),
        within=caller.within,
    )


def _reader(caller: Caller, after: str, wanted: FeedFilter) -> Source[FeedEventView]:
    shape = partial(FeedEventView.of, hidden=caller.redactions)
    return Reader(caller.store, after, wanted, shape, kept=caller.times.feed_retention)
