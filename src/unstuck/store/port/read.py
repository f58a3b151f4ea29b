"""The readers' port: the feed, counts, workers, and what `why` and `health` ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from unstuck.model.guard import EVERY
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, WorkerRecord
from unstuck.model.keys import Within
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Child, Spent, StepRecord, WaitRecord
from unstuck.model.why.facts import Facts, Locker
from unstuck.records import dataclass

TallyBy = Literal["tenant", "queue", "workflow"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many jobs of a tenant, queue or workflow are where, each counted up to the ceiling.

    `at_least`: states of which there may be more. Of QUEUED, `scheduled` wait for a later time (retries too) and
    `blocked` behind the job that blocks their target. `oldest_due_at`: when the job fell due that has waited longest,
    of those next on their routes; it is not told of all tenants together.
    """

    name: str
    states: dict[JobState, int]
    scheduled: int = 0
    blocked: int = 0
    oldest_due_at: datetime | None = None
    at_least: frozenset[JobState] = frozenset()
    ceiling: int = 10_000


@dataclass(frozen=True, slots=True)
class Dossier:
    """Everything about one job. Of events and attempts one page each: who wants all of many asks on behind them."""

    at: datetime
    job: JobRecord
    events: list[EventRecord]
    attempts: list[AttemptRecord]
    progress: str | None
    steps: list[StepRecord]
    waits: list[WaitRecord]
    usage: Spent
    children: list[Child]
    parent: str | None
    parts: int
    #: Why it has a dead letter.
    letter: str | None
    #: Something of its data is hidden from most.
    is_redacted: bool


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event of the feed: a job's move, or news. `cursor` is where to go on after it.

    A move is part of its job's history: it has that job, its `number`, run and token (0: before the first attempt).
    News have no number. None in any other place: it is not about one. `tenant` None: the platform's; EVERY: every
    tenant's. `job`: the move's; of news the one that published it, asks, or blocks the target. `target`: the one of
    that job, or that the news are about. `worker`: of news about a worker, its name. `topic`: what a publisher named.
    `by`: who published it, be it a worker for its handler; None: unstuck tells it itself.
    """

    cursor: str
    kind: str
    at: datetime
    data: dict[str, Any]
    tenant: str | None
    job: str | None = None
    queue: str | None = None
    workflow: str | None = None
    target: str | None = None
    topic: str | None = None
    worker: str | None = None
    by: str | None = None
    number: int | None = None
    run: int | None = None
    token: int | None = None

    @property
    def is_news(self) -> bool:
        return self.number is None


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """What a reader of the feed wants to see; None and () mean all. A tenant is shown its own and what is every
    tenant's; news of the platform are for whoever reads all tenants."""

    tenant: str | None = None
    kinds: tuple[str, ...] = ()
    job: str | None = None
    workflow: str | None = None
    target: str | None = None
    topic: str | None = None
    #: Nothing outside it: what its reader may know of. What is about no queue is in none.
    within: Within | None = None

    def admits(self, event: FeedEvent) -> bool:
        """What the SQL of `feed_page` says, for one reader that reads for many."""
        return (
            (self.tenant is None or event.tenant in (self.tenant, EVERY))
            and self.job in (None, event.job)
            and self.workflow in (None, event.workflow)
            and self.target in (None, event.target)
            and self.topic in (None, event.topic)
            and (not self.kinds or event.kind in self.kinds)
            and (self.within is None or self.within.holds(event.queue, event.workflow))
        )


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`cursor` is how far the page looked, also past events that were not wanted. `is_last`: no further yet."""

    events: tuple[FeedEvent, ...]
    cursor: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class FeedBounds:
    """Cursors: from `oldest` on everything that is kept can be read, from `newest` on what comes."""

    oldest: str
    newest: str


class OutputMark(NamedTuple):
    """How much a job has printed and given so far: the last attempt that printed, how many bytes, its last part. It
    is another one as soon as there is more."""

    attempt: int
    size: int
    part: int


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A session that has held rows or tables of ours for `held_for` seconds (None: this user may not know), and how
    many others wait for it now."""

    session: Locker
    held: tuple[str, ...]
    waiting: int
    held_for: float | None


@dataclass(frozen=True, slots=True)
class Overdue:
    """What a sweep should have seen to at `due_at`: the end of a lease, a timer, the latest end of an attempt."""

    what: Literal["lost", "start", "expire", "wait", "backstop"]
    due_at: datetime
    tenant: str
    job: str | None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class ClockStand:
    """What the database's clock did: by how many seconds it leapt last, when (before or after, all distances are what
    they were), who noticed, and how often so far. `ahead`: how far our time is from that clock since."""

    ahead: float
    leaps: int
    leap: float
    leapt_at: datetime | None
    noticed: str


@dataclass(frozen=True, slots=True)
class InboxStand:
    """When the oldest entry came, and how many entries there are, up to a ceiling."""

    since_at: datetime | None
    entries: int


class ReadPort(Protocol):
    """What people and programs look at; nothing here takes a lock."""

    def sequence(self, kept: float = 86400.0) -> int:
        """Give events that were committed since the last time their positions in the feed: how many it were; -1 if
        somebody else is just doing it. Readers do it before they read. `kept`: what nobody asked for in so long gets
        none any more."""
        ...

    def feed(self, after: str, wanted: FeedFilter, limit: int = 1000) -> FeedPage:
        """The events at the next `limit` positions, in the one order that every reader sees. StaleCursor says from
        where to go on when these are no longer kept."""
        ...

    def feed_bounds(self) -> FeedBounds: ...

    def output_marks(self, jobs: Sequence[str]) -> dict[str, OutputMark]:
        """Of those of these jobs that there are, by id, whoever's they are."""
        ...

    def counts(self, tenant: str | None = None, ceiling: int = 10_000) -> dict[JobState, int]:
        """Jobs per state, each counted up to the ceiling (a value equal to it means: at least that many)."""
        ...

    def tally(self, tenant: str | None = None, ceiling: int = 10_000) -> Tally:
        """The same with all that is known about the counts; None: of all tenants together."""
        ...

    def tallies(
        self, by: TallyBy, tenant: str = "", *, after: str = "", limit: int = 20, ceiling: int = 10_000
    ) -> list[Tally]:
        """By name, above `after`: each tenant, or each queue or workflow of one tenant."""
        ...

    def workers(self, after: int = 0, limit: int = 1000, *, ended_within: float | None = None) -> list[WorkerRecord]:
        """By number, above `after`: all whose rows are kept, or without those that ended longer ago than this."""
        ...

    def live_workers(self, host: tuple[str, str] | None = None) -> list[WorkerRecord]:
        """Those whose lease holds; of one host (boot id, pid namespace) if it is named."""
        ...

    def dossier(self, tenant: str, job: str, last: int | None = None) -> Dossier | None:
        """Everything about a job, with its `last` events and attempts, a page of each at most. One question, and
        one more for each kind of thing that it has."""
        ...

    def gate_facts(self, tenant: str, job: str) -> Facts | None:
        """How a job stands towards every gate of the claim, read at one instant (see `model.why`)."""
        ...

    def lock_holders(self, longer: float) -> list[LockHolder]:
        """Sessions that have held something of ours for longer than so many seconds, the oldest first. Reads no table
        of ours, so it answers whatever is locked. SQLite cannot name them: none."""
        ...

    def overdue(self, late: float, backstop: float) -> list[Overdue]:
        """What no sweep has seen to for `late` seconds after its time, the oldest of each kind; an attempt has
        `backstop` seconds more. What is in quarantine is not among it."""
        ...

    def inbox_stand(self, ceiling: int = 10_000) -> InboxStand: ...

    def clock_stand(self) -> ClockStand: ...

    def likely_now(self) -> datetime:
        """The engine's time as this process knows it, to a second or so; the database is asked only if it has not
        told it yet. By this a door judges signatures, and writes it down: the claim judges by the same instant."""
        ...
