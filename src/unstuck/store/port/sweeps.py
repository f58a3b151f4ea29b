"""The sweeps' port: what passing time does to jobs, and what is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class ServerSession:
    """One of ours with a database server, and since when it tries to answer."""

    pid: int
    asked_at: datetime
    application: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The first job that waits on a route, whatever its gates, and since when it is due. `is_paused`: on purpose."""

    route: int
    id: str
    tenant: str
    queue: str
    workflow: str
    since: datetime
    is_paused: bool = False


class WaitingRoutes(list[Waiting]):
    """One page of them, as OpenRoutes."""

    def __init__(self, waits: Iterable[Waiting] = (), looked_to: int = 0) -> None:
        super().__init__(waits)
        self.looked_to = looked_to


@dataclass(frozen=True, slots=True)
class Ended:
    """When a job ended (microseconds) and its number: a place in the order in which jobs are forgotten."""

    at: int
    job: int


FIRST_ENDED: Final = Ended(-1, -1)


class EndedPauses(NamedTuple):
    """Of the pauses that a sweep found over, how many went, and how many could not."""

    ended: int
    stayed: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """A job that a sweep took from a lost worker or convicted as overdue."""

    id: str
    worker: str
    state: JobState
    #: Seconds since that worker's last beat.
    silent_for: float = 0.0


NameKind = Literal["routes", "targets"]

#: A verb of many batches asks it between two of them: whether its caller has no time left.
Enough = Callable[[], bool]


def never() -> bool:
    return False


class SweepsPort(Protocol):
    """What a janitor asks.

    What a sweep finds held is left for the next one; what it cannot move alone goes to quarantine, out of its
    batches, and is tried again by itself each time.
    """

    def recover_lost(self, lost_grace: float, batch: int = 500, *, enough: Enough = never) -> list[Recovered]:
        """Attempts whose worker's lease has ended are settled as lost. `enough` ends what comes after that early:
        marking the workers, and tidying the quarantine up."""
        ...

    def convict_overdue(self, kill_grace: float, lease: float, batch: int = 500) -> list[Recovered]:
        """The backstop: attempts far past their limit or request are FAILED / ExecutionStuck, with a body mark.

        Only of workers whose lease holds: those of others are lost, not stuck.
        """
        ...

    def expire_worker(self, worker: int, seen_lease_until: datetime, reason: str) -> bool:
        """End the lease of a worker whose processes were seen to be gone; False if it renewed meanwhile."""
        ...

    def unread_sessions(self, unread_for: float) -> list[ServerSession]:
        """Those of ours, of any process, whose answer nobody has taken for so long; they may hold locks."""
        ...

    def end_unread_session(self, session: ServerSession) -> bool:
        """If it still waits with the same answer. Its client finds a lost connection, should it ever look."""
        ...

    def idle_duties(self) -> frozenset[str]:
        """The duties that would find nothing, by their names, in one question. Those it does not know are not among
        them."""
        ...

    def ingest_again(self, batch: int = 1000) -> int:
        """What could not be worked off and was set aside, and waits and children likewise: how many moved now."""
        ...

    def lift_body_marks(self, margin: float, batch: int = 500) -> int:
        """Body marks whose worker's lease has ended by more than the margin are removed."""
        ...

    def ended_before(self, retention: float, after: Ended = FIRST_ENDED, limit: int = 1000) -> list[Ended]:
        """The next jobs that ended longer ago than this, the oldest first. Takes no lock."""
        ...

    def count_ended(self, seconds: float, most: int) -> int:
        """How many jobs ended in the last so many seconds, counted as far as `most`. Takes no lock."""
        ...

    def forget_jobs(self, jobs: Sequence[int], retention: float) -> int:
        """Of these those that ended longer ago than this go, with all they left, unless somebody still needs them;
        a live job never does. Waits for nobody: what is held stays. StoreBusy if a row of one of them is."""
        ...

    def forget_ended(self, retention: float, batch: int = 1000) -> int:
        """The same for the oldest there are."""
        ...

    def forget_keys(self, batch: int = 1000, past: int = 0) -> int:
        """Keys whose life, as their submit gave it, and whose jobs are over. Here and in the others: a batch of the
        oldest, but not the `past` oldest of all, which could not go."""
        ...

    def forget_starts(self, batch: int = 1000, past: int = 0) -> int:
        """Starts that no rate limit counts any more."""
        ...

    def waits(self, after: int = 0, limit: int = 1000) -> WaitingRoutes:
        """The first job of each of the next `limit` routes above `after` on which jobs wait, ready or in a line."""
        ...

    def keep_code_limits(self) -> int:
        """The limits that workflows declare become those of the versions that the doors go by: how many were not."""
        ...

    def note_known(self) -> int:
        """Remember for each workflow that a worker whose lease holds knows it now."""
        ...

    def fail_orphans(self, route: int, orphan_after: float, batch: int = 500) -> int:
        """Jobs due for so long on a route whose workflow nobody has known for as long: FAILED / UnknownWorkflow."""
        ...

    def forget_workers(self, retention: float, batch: int = 100, past: int = 0) -> int: ...

    def tend_guard(self, batch: int = 500, *, enough: Enough = never) -> int:
        """Jobs in the queue whose workflow is blacklisted fail or are held; what was held for an entry that is gone
        goes on; the jobs that were let through are judged. How many it moved."""
        ...

    def forget_stucks(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Stuck executions that count no more, after so long at the earliest."""
        ...

    def forget_audit(self, retention: float, batch: int = 1000, past: int = 0) -> int: ...

    def expire_waits(self, batch: int = 500, *, enough: Enough = never) -> int:
        """Waits whose time has passed: their jobs go on with what was agreed for that, or fail."""
        ...

    def next_wait(self) -> float | None:
        """In how many seconds the first wait ends, 0 if it should have; None: there is none."""
        ...

    def tend_children(self, batch: int = 100, *, enough: Enough = never) -> int:
        """Children whose parent was cancelled, or failed, are cancelled unless they were to be left."""
        ...

    def forget_event_ids(self, batch: int = 1000, past: int = 0) -> int:
        """Ids of events whose time is over: sent again, they are new events."""
        ...

    def forget_unclaimed_events(self, batch: int = 1000, past: int = 0) -> int:
        """Events that nobody waited for in time."""
        ...

    def forget_orders(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Orders given longer ago than this, answered or not."""
        ...

    def forget_names(self, kind: NameKind, before: datetime, batch: int = 1000, past: int = 0) -> int:
        """Look at the routes or targets that nobody has meant since this instant, the longest unmeant first, and
        forget those that no job names; how many it looked at. Never one of the last two days (`model.names`)."""
        ...

    def forget_workflows(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Versions that no worker has had for so long; the last one of each name stays."""
        ...

    def forget_breakers(self, batch: int = 1000, past: int = 0) -> int:
        """Of workflows against which nothing counts any more."""
        ...

    def end_pauses(self, batch: int = 100, past: int = 0) -> EndedPauses:
        """Pauses of queues, workflows and tenants whose time is over go, and it is told. Nothing waits for it: they
        shut nothing any more. `past`: so many that were over first are left alone."""
        ...

    def forget_news(self, kept: float, batch: int = 1000, past: int = 0) -> int:
        """News that are older than this, or whose own time is over."""
        ...

    def forget_published(self, batch: int = 1000, past: int = 0) -> int:
        """The oldest of what a tenant has published beyond what is kept of it. It counts all there is."""
        ...

    def forget_feed(self, kept: float, batch: int = 5000, past: int = 0) -> int:
        """Positions older than this go; a reader that still stands there is told (StaleCursor)."""
        ...
