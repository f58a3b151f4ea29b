"""The worker's port: what a worker asks, from its registration to its leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from unstuck.model.job import AttemptRef, ClaimedJob, NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.news import Publication
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.settlement import Outcome
from unstuck.model.waits import Child, Journal, Spent
from unstuck.records import dataclass
from unstuck.store.hint import Hint
from unstuck.store.port.guard import QuarantineDuty
from unstuck.store.port.sweeps import Enough, never


@dataclass(frozen=True, slots=True)
class NewWorker:
    incarnation: str
    name: str
    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    pid_start: int
    queues: tuple[str, ...]
    code_version: str
    lease: float
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a job waits: one per (tenant, queue, workflow, limit key); its number is the key of `ready`."""

    number: int
    tenant: str
    queue: str
    workflow: str
    limit_key: str = ""


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """The first job that waits on a route none of whose gates is shut. Lower rank goes first: time of submission,
    less a minute per priority; of one rank the lower `job`. `is_limited`: a claim from it must count first."""

    route: int
    rank: int
    is_limited: bool = False
    job: int = 0


class OpenRoutes(list[OpenRoute]):
    """One page of them. `looked_to`: the route to go on from; 0 if this page is the last. A page may be short or
    empty and yet not the last: routes with a shut gate are left out."""

    def __init__(self, routes: Iterable[OpenRoute] = (), looked_to: int = 0) -> None:
        super().__init__(routes)
        self.looked_to = looked_to


@dataclass(frozen=True, slots=True)
class Share:
    """How many jobs a claim may take from a route. `floor` (rank, number): look from there on, and do not walk over
    what others took a moment ago. `last`: look no further than there."""

    route: int
    limit: int
    floor: tuple[int, int] | None = None
    is_limited: bool = False
    last: tuple[int, int] | None = None


class Claimed(list[ClaimedJob]):
    """The jobs that a claim opened. `held`: routes that gave nothing because another claim holds one of their limits;
    ask again soon. `left_out`: attempts that were opened too, whose payloads could not be read in time or were too
    large together; they were given back, and a smaller claim gets them. `in_parts`: something went wrong, and there
    may be more than it brought."""

    def __init__(
        self,
        jobs: Iterable[ClaimedJob] = (),
        held: frozenset[int] = frozenset(),
        left_out: Sequence[AttemptRef] = (),
        in_parts: bool = False,
    ) -> None:
        super().__init__(jobs)
        self.held = held
        self.left_out = tuple(left_out)
        self.in_parts = in_parts


@dataclass(slots=True)
class Report:
    """How an attempt ended, as its worker saw it. `output` is what the handler printed and logged, capped.
    `has_target` is a hint that spares a settle the way that is open only to jobs without one. `span`: the traceparent
    of the attempt, for the next one to link to."""

    ref: AttemptRef
    outcome: Outcome
    duration_ms: int | None = None
    output: str | None = None
    has_target: bool = False
    span: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptOutput:
    """What a running handler printed or logged since the last time, and how far it says it is (JSON text). `at`: how
    many characters of its output came before, so that one that is written again adds nothing; None: all there are."""

    ref: AttemptRef
    output: str | None = None
    progress: str | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step that an attempt has finished."""

    ref: AttemptRef
    name: str
    ordinal: int
    result: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class NewChild:
    """A job that an attempt spawns. `on_end`: whether it is cancelled when its parent ends FAILED or TIMEOUT; a
    cancelled parent's always is, a completed one's never."""

    ref: AttemptRef
    name: str
    ordinal: int
    job: NewJob
    on_end: Literal["cancel", "leave"] = "cancel"


class Verdict(StrEnum):
    """What became of one report. BUSY: nothing was written, because another session holds one of its rows or the
    database refuses this report alone. Keep the report and send it again."""

    DONE = "done"
    FENCED = "fenced"
    BUSY = "busy"


#: Why something is BUSY that nothing is wrong with.
HELD: Final = "another session of the database holds one of its rows"


@dataclass(slots=True)
class Settled:
    """`wait_ends_in`: seconds until the wait's deadline (parked attempts only); 0 if that is not known any more.
    `problem`: why the report is BUSY; "" if the batch ended before it was tried."""

    ref: AttemptRef
    verdict: Verdict
    state: JobState | None = None
    wait_ends_in: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A durable request that a running attempt has not obeyed yet."""

    ref: AttemptRef
    kind: RequestKind
    reason: str | None


@dataclass(frozen=True, slots=True)
class Beat:
    """What a beat learned. `alive` False: the lease has ended, stop everything. `gone`: attempts that the worker has
    and the database no longer grants. `unheld`: attempts that the database granted and the worker does not hold; they
    were given back. `unstarted`: jobs whose start could not be written; send it with the next beat. If the lease was
    renewed and the rest failed, everything else is empty."""

    alive: bool
    lease_until: datetime | None = None
    asked: tuple[Asked, ...] = ()
    gone: tuple[AttemptRef, ...] = ()
    unheld: tuple[AttemptRef, ...] = ()
    state: str = "active"
    unstarted: frozenset[int] = frozenset()
    #: By the database's clock; what was claimed later is left alone by its reconciliation.
    renewed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ingested:
    """How many entries an ingest took, how many jobs became ready, and the last entry's number. `held`: targets that
    another session held, whose entries went back into the inbox."""

    entries: int
    woken: int
    last: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """What is there to do before a claim. `timer_in`: seconds until the next delayed start, retry, end of a stay or
    of a target's pause, 0 if one is due or a late one is to be tried again; None: none is set."""

    timer_in: float | None
    has_news: bool
    has_ready: bool

    @property
    def has_timers(self) -> bool:
        return self.timer_in is not None and self.timer_in <= 0


OrderKind = Literal["recycle", "drain", "stack", "kill"]


@dataclass(frozen=True, slots=True)
class WorkerOrder:
    """What somebody asks of a worker itself. `subject`: "" for the whole worker, a pid, or "JOBNUMBER:TOKEN"."""

    number: int
    worker: int
    kind: OrderKind
    subject: str
    by: str
    given_at: datetime
    done_at: datetime | None = None
    answer: str | None = None
    is_refused: bool = False


class ClaimPort(Protocol):
    """What is asked by who chooses jobs for a worker: the worker's own claimer, or a server for those that have no
    database."""

    def declare_schedules(
        self, app: str, origin: str, code_version: str, declared: Sequence[DeclaredSchedule]
    ) -> list[str]:
        """What this version of an app declares; what was refused, in words. The newest version that has live workers
        decides."""
        ...

    def register_workflows(
        self,
        workflows: Sequence[WorkflowRecord],
        *,
        worker: int | None = None,
        queues: Sequence[str] = (),
        app: str | None = None,
        tenant: str | None = None,
    ) -> frozenset[str]:
        """What this code can run; with a worker also: what it claims from now on (see `why`), and for
        which app. Nothing that somebody else holds is waited for: the answer names the
        workflows of which not all could be written. `tenant`: the only one whose jobs it runs, and go by these rows;
        None: everybody's."""
        ...

    def due(self, after: int = 0) -> Due:
        """Whether timers (`release_due`), the inbox above `after` (`ingest`) or jobs (`open_routes`) wait for
        somebody, and when the next timer will. One read, whatever there is."""
        ...

    def release_due(self, batch: int = 1000, *, enough: Enough = never) -> int:
        """Delayed starts and retries that came due become claimable; stays in the queue that lasted too long fail."""
        ...

    def ingest(self, after: int = 0, batch: int = 1000) -> Ingested:
        """Work off the inbox above `after`: targets whose line grew get a head, dependants of what ended go on."""
        ...

    def routes(self, numbers: Sequence[int]) -> list[Route]:
        """The routes with these numbers; a route never changes."""
        ...

    def open_routes(self, after: int = 0, limit: int = 1000) -> OpenRoutes:
        """Of the next `limit` routes above `after` on which work is due those that no gate shuts, each with its first
        job; reads one row per route."""
        ...

    def open_routes_of(self, routes: Sequence[int]) -> OpenRoutes:
        """The same of these routes, whatever else waits."""
        ...

    def open_plain_routes(self) -> OpenRoutes:
        """The same of the routes without a limit key, a thousand at most: what is behind thousands of keys of others
        is found by going round, these at once."""
        ...

    def weights(self) -> dict[str, int]:
        """Of the tenants that have another weight than 1."""
        ...

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> Claimed:
        """Open attempts, never more than each share, only while the worker's lease holds; nothing waits for a limit
        that another transaction holds. A repeated claim id answers with the same attempts that are still open, and
        claims nothing new."""
        ...

    def wait_for_work(self, timeout: float) -> Hint | None:
        """Sleep until somebody hints at new work, or the timeout (None). All that was hinted since the wait before is
        in it; what was not hinted at all, it may be anywhere."""
        ...

    def stay_awake(self) -> None:
        """This process is too busy to wait for work: hints would only cost those who give them."""
        ...


class WorkerPort(Protocol):
    """What a worker asks, but for its claims: beside the database directly, from elsewhere over HTTP."""

    def probe(self) -> None:
        """Write nothing, as every write does: fails when the store cannot be written to, even if it answers reads."""
        ...

    def now(self) -> datetime:
        """The database's clock: leases, timers and timestamps."""
        ...

    def register_worker(self, worker: NewWorker) -> WorkerRecord: ...

    def beat(
        self,
        worker: int,
        lease: float,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
        state: str = "active",
        info: Mapping[str, Any] | None = None,
    ) -> Beat:
        """Renew the lease and reconcile, by one call."""
        ...

    def renew(
        self, worker: int, lease: float, *, state: str = "active", info: Mapping[str, Any] | None = None
    ) -> Beat:
        """Renew the lease unless it has ended. Waits for the worker's own row; no other can cost the lease."""
        ...

    def reconcile(
        self,
        worker: int,
        renewed: Beat,
        held: Sequence[AttemptRef],
        *,
        pending_claims: Sequence[str] = (),
        settling: Sequence[AttemptRef] = (),
        started: Mapping[int, datetime] | None = None,
    ) -> Beat:
        """What the database grants and is neither held, nor of a claim under way, nor being settled, goes back
        uncharged. No claim of this worker may begin meanwhile; it waits for nobody."""
        ...

    def asked(self, worker: int) -> list[Asked]:
        """Requests for this worker's running attempts: the cancel poll, cheaper than a beat."""
        ...

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str | None = None) -> Verdict:
        """Make the worker's own request (timeout, drain) durable before the handler hears of it. StoreBusy, after a
        moment, where somebody holds the attempt."""
        ...

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        """End attempts, each under its fence; the pending request is read in the same transaction.

        Waits for nobody: what another transaction holds, or the database refuses alone, is BUSY, and all others
        settle.
        """
        ...

    def keep_output(self, outputs: Sequence[AttemptOutput]) -> list[Verdict]:
        """Keep what running attempts said, each under its fence: output is appended and capped, progress replaced.

        A progress that cannot be stored is left out; nothing else of its batch is. BUSY as for a settle.
        """
        ...

    def journal(self, ref: AttemptRef, after: int = 0) -> Journal | None:
        """What earlier attempts have left for this one, page by page; None: fenced."""
        ...

    def record_steps(self, steps: Sequence[NewStep]) -> list[Verdict]:
        """Each once, under its fence: a step that is recorded already is DONE and stays as it is. With a step the
        count of its job's losses begins anew. InvalidInput for one that cannot be kept: then none of its job was.
        BUSY: somebody holds its attempt. This and what follows wait for a lock for a moment only: StoreBusy, ask
        again."""
        ...

    def spend(self, ref: AttemptRef, serial: int, amounts: Mapping[str, float]) -> Spent | None:
        """Count what was used; `serial` grows with every spending of an attempt. Over the budget the request BUDGET
        is made durable with it. None: fenced."""
        ...

    def keep_part(self, ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
        """Keep a partial result, under the fence; the same name again replaces the value. `serial` grows with every
        one of an attempt. InvalidInput for one that is too large or one too many: then nothing was written."""
        ...

    def publish_from(self, ref: AttemptRef, place: int, given: Publication) -> Verdict:
        """Tell it in the feed, under the fence. `place` counts what this attempt publishes: the same one again tells
        nothing. InvalidInput for one too many, or what cannot be kept."""
        ...

    def spawn(self, child: NewChild) -> Child | None:
        """Submit it as a child. The same name and ordinal again is the same child, unless that one ended in an
        earlier run other than COMPLETED. None: fenced. Raises what a submit does, and TargetDeadlock."""
        ...

    def gather(self, ref: AttemptRef, children: Sequence[str], release_target: bool = False) -> str | None:
        """How these children ended, in this order (JSON, as a wait for them is answered); None: not all have yet, so
        park; Verdict.FENCED, which is no JSON. TargetDeadlock when they cannot while it waits, InvalidInput for what
        is not its child."""
        ...

    def lift_body_mark(self, worker: int, job: int) -> bool:
        """By the supervisor that saw the process die: its own mark, never one that another worker wrote since."""
        ...

    def quarantine(self, duty: QuarantineDuty, errors: Mapping[int, str], by: str) -> frozenset[int]:
        """Set these items aside, each with its error; the first of a workflow and duty makes a notification. The
        answer: those that could not even be set aside."""
        ...

    def leave_quarantine(self, duty: QuarantineDuty, item: int) -> None:
        """It was written after all, or there is nothing left to write."""
        ...

    def orders(self, worker: int) -> list[WorkerOrder]:
        """What people asked of this worker and it has not answered yet, the oldest first; costs next to nothing."""
        ...

    def answer_order(self, number: int, answer: str, *, refused: bool = False) -> None:
        """The first answer counts."""
        ...

    def unregister_worker(self, worker: int) -> None:
        """It leaves in order: what it still holds goes back uncharged and its lease ends now."""
        ...

    def fence_worker(self, worker: int, reason: str) -> bool:
        """Its last words: it ends itself, and its jobs are not to blame. They stay its own until its lease ends."""
        ...

    def notify(self, title: str, message: str, link: str, severity: str = "warning") -> bool:
        """News for the operators of the platform; False: the same title and link are open already."""
        ...

    def close(self) -> None: ...
