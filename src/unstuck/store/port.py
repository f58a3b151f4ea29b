"""WorkerPort and Store: every question we ask a database, in the order of the road.

One verb is one transaction with one typed outcome. A verb that could not be carried out raises a StoreError:
StoreUnavailable and StoreBusy mean that nothing was written, OutcomeUnknown that the answer was lost. Every verb
is safe to repeat: submit by the job's id and key, claim by its claim id, settle by (job, token, claim id).
Tenant is a parameter wherever a person asks; workers serve all tenants by route.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from unstuck.model.guard import EVERY as EVERY
from unstuck.model.guard import Action, BlacklistEntry, Notification, SettingRecord
from unstuck.model.job import (
    AttemptRecord,
    AttemptRef,
    ClaimedJob,
    EventRecord,
    JobRecord,
    NewJob,
    WorkerRecord,
    WorkflowRecord,
)
from unstuck.model.lifecycle import JobState, RequestKind, Shown
from unstuck.model.parts import MOST_PARTS, Part
from unstuck.model.settlement import Outcome
from unstuck.model.standing import Facts, Locker
from unstuck.model.waits import Answer, Child, Journal, Signalled, Spent, StepRecord, WaitRecord


@dataclass(frozen=True, slots=True)
class Submitted:
    """`created` is False when the idempotency key (or the id) was known: then this is the earlier job."""

    id: str
    created: bool


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
class Front:
    """The first job that waits on a route none of whose gates is shut. Lower rank goes first: time of submission,
    less a minute per priority; of one rank the lower `job`. `is_limited`: a claim from it must count first."""

    route: int
    rank: int
    is_limited: bool = False
    job: int = 0


class Fronts(list[Front]):
    """One page of a look. `looked_to`: the route to go on from; 0 when there is none beyond. A page may be short, or
    empty, and yet not the last: routes with a shut gate are looked at and left out."""

    def __init__(self, fronts: Iterable[Front] = (), looked_to: int = 0) -> None:
        super().__init__(fronts)
        self.looked_to = looked_to


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
    """One page of them, as Fronts."""

    def __init__(self, waits: Iterable[Waiting] = (), looked_to: int = 0) -> None:
        super().__init__(waits)
        self.looked_to = looked_to


@dataclass(frozen=True, slots=True)
class Share:
    """How many a claim may take from a route. `floor` (rank, number): look from there on; what
    others took a moment ago need not be walked over again. `last`: look no further than there."""

    route: int
    limit: int
    floor: tuple[int, int] | None = None
    is_limited: bool = False
    last: tuple[int, int] | None = None


class Claimed(list[ClaimedJob]):
    """What a claim opened. `held`: routes that gave nothing because somebody else holds a limit of theirs, who most
    often just claims: worth asking again soon. `left_out`: opened as well, but their payloads could not be read in
    time, or were too much at once; they are on their way back, and whoever asks for fewer gets them."""

    def __init__(
        self,
        jobs: Iterable[ClaimedJob] = (),
        held: frozenset[int] = frozenset(),
        left_out: Sequence[AttemptRef] = (),
    ) -> None:
        super().__init__(jobs)
        self.held = held
        self.left_out = tuple(left_out)


@dataclass(slots=True)
class Report:
    """How an attempt ended, as its worker saw it. `output` is what the handler printed and logged, capped.
    `has_target` is a hint that spares a settle the way that is open only to jobs without one."""

    ref: AttemptRef
    outcome: Outcome
    duration_ms: int | None = None
    output: str | None = None
    has_target: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
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
    """What became of one report. BUSY: nothing was written, and it still counts: somebody holds one of its rows, or
    the database refuses it alone. Keep it, and come again."""

    DONE = "done"
    FENCED = "fenced"
    BUSY = "busy"


#: Why something is BUSY that nothing is wrong with.
HELD: Final = "another session of the database holds one of its rows"


@dataclass(slots=True)
class Settled:
    """`wait_ends_in`: of one that parks, in how many seconds somebody has to look after its wait; 0 where that is not
    known any more. `problem`: why it is BUSY; "" if nobody got to it."""

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
    """What a beat learned. `alive` False: the lease is gone, stop everything. `gone`: attempts held here that the
    database no longer grants. `strays`: attempts it grants that are not held here; they were given back. `unstarted`:
    jobs whose start could not be written now; say it again. Where the lease was renewed and the rest failed, all but
    that is empty."""

    alive: bool
    lease_until: datetime | None = None
    asked: tuple[Asked, ...] = ()
    gone: tuple[AttemptRef, ...] = ()
    strays: tuple[AttemptRef, ...] = ()
    state: str = "active"
    unstarted: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Ended:
    """When a job ended (microseconds) and its number: a place in the order in which jobs are forgotten."""

    at: int
    job: int


#: A job that is retried for days has thousands of both; an attempt may have printed 64 KiB and left a stack as long.
HISTORY_PAGE: Final = 1000
ATTEMPTS_PAGE: Final = 100

FIRST_ENDED: Final = Ended(-1, -1)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A job that a sweep took from a lost worker or convicted as overdue."""

    id: str
    worker: str
    state: JobState


@dataclass(frozen=True, slots=True)
class Ingested:
    """How many entries an ingest took, how many jobs became ready by it, and the last entry's number. `held`: targets
    that somebody had at that instant, whose entries went back."""

    entries: int
    woken: int
    last: int = 0
    held: int = 0


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


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs a job at this instant: the worker's number, and the attempt."""

    worker: int
    ref: AttemptRef


# EVERY, in place of a tenant: all of them (a limit then counts them together). As the name of a tenant or key limit:
# each tenant or key by itself.
PauseKind = Literal["queue", "workflow", "tenant", "target"]
LimitKind = Literal["workflow", "queue", "tenant", "key"]
NameKind = Literal["routes", "targets"]
LimitPart = Literal["concurrency", "rate", "max_queued"]

#: Who set a limit that stands in the code; it gives way to everybody else.
BY_CODE: Final = "code"


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing new starts there until it ends or is lifted; what runs goes on. `tenant` may be EVERY."""

    kind: PauseKind
    name: str
    tenant: str
    by: str
    since_at: datetime | None = None
    until_at: datetime | None = None
    reason: str | None = None
    #: When asked for: `until_at` is an instant of the database's clock; else of our time, which does not leap.
    is_appointed: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """How many may run at once (`concurrency`), start in a time (`rate` per `per` seconds), wait (`max_queued`)."""

    kind: LimitKind
    name: str
    tenant: str
    by: str
    concurrency: int | None = None
    rate: int | None = None
    per: float | None = None
    max_queued: int | None = None
    set_at: datetime | None = None

    @property
    def counts_something(self) -> bool:
        return any(part is not None for part in (self.concurrency, self.rate, self.max_queued))


@dataclass(frozen=True, slots=True)
class TenantRecord:
    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """A target as it stands: whose turn it is, what blocks it, how many wait (up to a ceiling)."""

    number: int
    tenant: str
    name: str
    head: str | None = None
    head_state: JobState | None = None
    blocked_by: str | None = None
    blocked_at: datetime | None = None
    waiting: int = 0
    pause: Pause | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class JobFilter:
    #: States, and parts of them (Shown): any of these.
    states: tuple[JobState | Shown, ...] = ()
    workflow: str | None = None
    queue: str | None = None
    error_type: str | None = None
    newest_first: bool = True
    target: str | None = None
    tag: str | None = None
    #: Submitted before, or after, this instant.
    before: datetime | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """`next` is the cursor of the page after this one; a page may be short and still have one."""

    jobs: tuple[JobRecord, ...]
    next: str | None = None


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
class FeedEvent:
    """One event of the feed. `cursor` is where to go on after it."""

    cursor: str
    tenant: str
    queue: str
    workflow: str
    event: EventRecord

    @property
    def job(self) -> str:
        return self.event.job

    @property
    def number(self) -> int:
        return self.event.number

    @property
    def kind(self) -> str:
        return self.event.kind

    @property
    def at(self) -> datetime:
        return self.event.at

    @property
    def data(self) -> dict[str, Any]:
        return self.event.data


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """What a reader of the feed wants to see; None and () mean all."""

    tenant: str | None = None
    kinds: tuple[str, ...] = ()
    job: str | None = None
    workflow: str | None = None


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


#: Asked between two batches of a verb that has many: whether whoever called it has had enough for now.
Enough = Callable[[], bool]


def never() -> bool:
    return False


#: What can fail for one thing alone while the store answers: the settle of an attempt, one item of a sweep or ingest.
QuarantineDuty = Literal[
    "claim",
    "settle",
    "recover",
    "overdue",
    "start",
    "expire",
    "wait",
    "orphan",
    "blacklist",
    "children",
    "dependants",
    "target",
    "hold",
    "retention",
]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One thing that could not be written although the store answered. Every sweep tries it again, alone; it delays
    nothing but itself. `item`: the job's number (of duty "target": the target's)."""

    duty: QuarantineDuty
    item: int
    tenant: str
    since_at: datetime
    tried_at: datetime
    tries: int
    error: str
    by: str
    job: str | None = None
    workflow: str | None = None
    target: str | None = None


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
    """Since when its oldest entry has stood there, and how many there are, up to a ceiling."""

    since_at: datetime | None
    entries: int


class WorkerPort(Protocol):
    """What a worker asks: on the same machine directly, from elsewhere over HTTP."""

    def now(self) -> datetime:
        """The database's clock: leases, timers and timestamps."""
        ...

    def register_worker(self, worker: NewWorker) -> WorkerRecord: ...

    def register_workflows(
        self, workflows: Sequence[WorkflowRecord], *, worker: int | None = None, queues: Sequence[str] = ()
    ) -> frozenset[str]:
        """What this code can run; with a worker also: what it claims from now on (see `why`). Nothing that somebody
        else holds is waited for: the answer names the workflows of which not all could be written."""
        ...

    def ingest(self, after: int = 0, batch: int = 1000) -> Ingested:
        """Work off the inbox above `after`: targets whose line grew get a head, dependants of what ended go on."""
        ...

    def ingest_again(self, batch: int = 1000) -> int:
        """What could not be worked off and was set aside, and waits and children likewise: how many moved now."""
        ...

    def routes(self, numbers: Sequence[int]) -> list[Route]:
        """The routes with these numbers; a route never changes."""
        ...

    def fronts(self, after: int = 0, limit: int = 1000) -> Fronts:
        """Of the next `limit` routes above `after` on which work is due those that no gate shuts, each with its first
        job; reads one row per route."""
        ...

    def fronts_of(self, routes: Sequence[int]) -> Fronts:
        """The same of these routes, whatever else waits."""
        ...

    def weights(self) -> dict[str, int]:
        """Of the tenants that have another weight than 1."""
        ...

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> Claimed:
        """Open attempts, never more than each share, only while the worker's lease holds; nothing waits for a limit
        that somebody holds. A repeated claim id answers with the same attempts that are still open, and claims
        nothing new."""
        ...

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
        """Renew the lease unless it has ended, and reconcile: what the database grants and is neither held, nor of a
        claim under way, nor being settled, goes back uncharged. No row but the worker's own can cost the lease."""
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

        Waits for nobody: what somebody else holds, or the database refuses alone, is BUSY, and all others settle.
        """
        ...

    def remark(self, remarks: Sequence[Remark]) -> list[Verdict]:
        """Keep what running attempts said, each under its fence: output is appended and capped, progress replaced.

        A progress that cannot be stored is left out; nothing else of its batch is. BUSY as for a settle.
        """
        ...

    def journal(self, ref: AttemptRef, after: int = 0) -> Journal | None:
        """What earlier attempts have left for this one, page by page; None: fenced."""
        ...

    def record_steps(self, steps: Sequence[NewStep]) -> list[Verdict]:
        """Each once, under its fence: a step that is recorded already is DONE and stays as it is. With a step the
        count of its job's losses begins anew. InvalidInput for one that cannot be kept: then none of them was. BUSY:
        somebody holds its attempt. This and what follows wait for a lock for a moment only: StoreBusy, ask again."""
        ...

    def spend(self, ref: AttemptRef, serial: int, amounts: Mapping[str, float]) -> Spent | None:
        """Count what was used; `serial` grows with every spending of an attempt. Over the budget the request BUDGET
        is made durable with it. None: fenced."""
        ...

    def keep_part(self, ref: AttemptRef, serial: int, name: str, value: str) -> Verdict:
        """Keep a partial result, under the fence; the same name again replaces the value. `serial` grows with every
        one of an attempt. InvalidInput for one that is too large or one too many: then nothing was written."""
        ...

    def spawn(self, child: NewChild) -> Child | None:
        """Submit it as a child. The same name and ordinal again is the same child, unless that one ended in an
        earlier run other than COMPLETED. None: fenced. Raises what a submit does, and TargetDeadlock."""
        ...

    def gather(self, ref: AttemptRef, children: Sequence[str], release_target: bool = False) -> str | None:
        """How these children ended, in this order (JSON, as a wait for them is answered); None: not all have yet, so
        park. TargetDeadlock when they cannot while it waits, InvalidInput for what is not its child."""
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
        """News for whoever runs the platform; False: the same title and link are open already."""
        ...

    def close(self) -> None: ...


class Store(WorkerPort, Protocol):
    """All the verbs."""

    # --- submit -----------------------------------------------------------------------------------------------
    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """All or nothing. Raises KeyConflict when a key is known with another fingerprint, WorkflowBlacklisted for a
        workflow of which nothing is accepted."""
        ...

    def workflow(self, name: str) -> WorkflowRecord | None: ...

    def workflows(self) -> list[WorkflowRecord]: ...

    # --- control ----------------------------------------------------------------------------------------------
    def cancel(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        """At rest: CANCELLED in this transaction. Running: the request is durable. Ended: IllegalMove."""
        ...

    def interrupt(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord: ...

    def resume(self, tenant: str, job: str, by: str, *, from_start: bool = False) -> JobRecord:
        """A new, clean run of a PAUSED, FAILED, TIMEOUT or CANCELLED job, at its old age. WorkflowBlacklisted,
        as also for hurry and release."""
        ...

    def resolve(self, tenant: str, job: str, by: str, result: str) -> JobRecord:
        """A person supplies the result: a new run that ends COMPLETED at once."""
        ...

    def hurry(self, tenant: str, job: str, by: str) -> JobRecord:
        """Make a QUEUED job that waits for its time due now."""
        ...

    def release(self, tenant: str, job: str, by: str, *, force: bool = False) -> JobRecord:
        """Lift the hold of a PENDING job; one that also waits for others to end does so unless forced."""
        ...

    def skip(self, tenant: str, job: str, by: str) -> JobRecord:
        """Let the target of a job that blocks it move on, and leave the job as it is."""
        ...

    def give_order(self, worker: int, kind: OrderKind, subject: str, by: str) -> WorkerOrder:
        """Ask a worker whose lease holds; UnknownWorker for any other. The same order, still open, is that order."""
        ...

    def order(self, number: int) -> WorkerOrder | None: ...

    def holder(self, tenant: str, job: str) -> Holder | None:
        """None: it is not RUNNING."""
        ...

    # --- flow: events, approvals, steps, children --------------------------------------------------------------
    def signal(
        self, tenant: str, event: str, payload: str, by: str, *, job: str | None = None, topic: str | None = None
    ) -> Signalled:
        """Send an event to a job or a topic: it answers one wait, or is kept for one until its time has passed.
        UnknownJob; NotWaiting for a job that has ended."""
        ...

    def decide(
        self, tenant: str, job: str, answer: Answer, by: str, comment: str | None = None, *, key: str | None = None
    ) -> WaitRecord:
        """APPROVED or REJECTED: the open approval of this job (`key`: this one). NotWaiting when there is none."""
        ...

    def open_waits(
        self, tenant: str | None = None, *, kind: str = "approval", after: str = "", limit: int = 100
    ) -> list[WaitRecord]:
        """The oldest first; `after` is the `cursor` of the last one of the page before."""
        ...

    def waits_of(self, tenant: str, job: str) -> list[WaitRecord]:
        """All that a job ever waited for, the oldest first."""
        ...

    def steps_of(self, tenant: str, job: str) -> list[StepRecord]: ...

    def parts_of(self, tenant: str, job: str, after: int = 0, limit: int = MOST_PARTS) -> list[Part]:
        """Its partial results above this number, the lowest number first."""
        ...

    def count_parts(self, tenant: str, job: str) -> int: ...

    def usage_of(self, tenant: str, job: str) -> Spent:
        """Of its present run."""
        ...

    def children_of(self, tenant: str, job: str) -> list[Child]: ...

    def parent_of(self, tenant: str, job: str) -> str | None: ...

    # --- order: pauses, limits, tenants, targets ---------------------------------------------------------------
    def pause(self, pause: Pause) -> Pause:
        """A pause that stands already is replaced. UnknownTarget, UnknownTenant for what nobody ever used."""
        ...

    def unpause(self, kind: PauseKind, name: str, tenant: str, by: str = "") -> bool:
        """False when there was none."""
        ...

    def pauses(self, tenant: str | None = None) -> list[Pause]:
        """Those that shut something of this tenant (None: all there are)."""
        ...

    def set_limit(self, limit: Limit) -> Limit: ...

    def change_limit(self, limit: Limit, parts: Collection[LimitPart]) -> Limit | None:
        """Only these parts of it are said, the others stay as they stand. With nothing left it is lifted.
        Answers what holds now: perhaps what the code says."""
        ...

    def remove_limit(self, kind: LimitKind, name: str, tenant: str, by: str = "") -> bool:
        """False when nobody had set one. What the code says cannot be removed, only replaced; it holds again at once
        when what stood in its place is lifted."""
        ...

    def limits(self, tenant: str | None = None) -> list[Limit]: ...

    def set_tenant(self, name: str, weight: int, by: str) -> TenantRecord: ...

    def tenants(self, after: str = "", limit: int = 100) -> list[TenantRecord]:
        """By name: all that have a weight of their own or ever had a job."""
        ...

    def tenant(self, name: str) -> TenantRecord | None: ...

    def target(self, tenant: str, name: str) -> TargetRecord | None: ...

    def targets(self, tenant: str, *, blocked: bool = False, after: str = "", limit: int = 100) -> list[TargetRecord]:
        """By name; only those that are blocked, if asked, the longest blocked first."""
        ...

    def line(self, tenant: str, target: str, limit: int = 20) -> list[JobRecord]:
        """Who waits for a turn on this target, the next first; whoever has the turn is not among them."""
        ...

    # --- guard: blacklist, settings, notifications, audit ------------------------------------------------------
    def blacklist(self, tenant: str | None = None) -> list[BlacklistEntry]:
        """The active entries that bar something of this tenant (None: all there are), the oldest first."""
        ...

    def blacklist_add(self, tenant: str, workflow: str, reason: str, by: str) -> tuple[BlacklistEntry, bool]:
        """No claim that commits after this returns a job of it. `tenant` may be EVERY. An entry that stands already
        stays as it is, and then the second answer is False."""
        ...

    def blacklist_remove(self, tenant: str | None, workflow: str, by: str) -> list[BlacklistEntry]:
        """The entry of this tenant (EVERY: that of all tenants), or with None all that stand against the workflow.
        The window begins anew, and what was held goes on."""
        ...

    def blacklist_history(
        self, tenant: str | None = None, workflow: str | None = None, *, before: int | None = None, limit: int = 100
    ) -> list[BlacklistEntry]:
        """All there ever were, the newest first."""
        ...

    def marks_against(self, tenant: str, workflow: str) -> int:
        """How many stuck executions count against it at this moment."""
        ...

    def settings(self) -> list[SettingRecord]:
        """The runtime settings as they are in force."""
        ...

    def set_setting(self, name: str, value: str | None, by: str) -> SettingRecord:
        """`value` is checked JSON text; None: the default again. Holds everywhere from the commit on."""
        ...

    def notifications(
        self, tenant: str | None = None, *, acked: bool = False, before: int | None = None, limit: int = 100
    ) -> list[Notification]:
        """Those that nobody has taken note of, with `acked` all, the newest first."""
        ...

    def ack_notification(self, number: int, by: str) -> Notification: ...

    # --- quarantine: what could not be written ------------------------------------------------------------------

    def quarantine(self, duty: QuarantineDuty, errors: Mapping[int, str], by: str) -> None:
        """Set these items aside, each with its error; the first of a workflow and duty makes a notification."""
        ...

    def leave_quarantine(self, duty: QuarantineDuty, item: int) -> None:
        """It was written after all, or there is nothing left to write."""
        ...

    def quarantine_due(self, duty: QuarantineDuty, batch: int = 100) -> list[int]:
        """Items to try again, alone, those that were not tried for longest first."""
        ...

    def quarantined(
        self,
        tenant: str | None = None,
        *,
        job: str | None = None,
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> list[Quarantined]:
        """What is set aside, by duty and item, beyond `after`; of one job, or of all."""
        ...

    def retry_quarantined(
        self,
        duty: QuarantineDuty | None = None,
        item: int | None = None,
        *,
        job: str = "all",
        tenant: str = EVERY,
        by: str = "",
    ) -> int:
        """A person asks for these next: how many. `job`, `tenant` and `by` are for the audit."""
        ...

    def audit(
        self,
        tenant: str | None = None,
        *,
        verb: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Action]:
        """What people did, the newest first. `verb` is one, or the noun of several (jobs, blacklist)."""
        ...

    # --- time -------------------------------------------------------------------------------------------------
    # What a sweep finds held is left for the next one; what it cannot move alone goes to quarantine, out of its
    # batches, and is tried again by itself each time.

    def recover_lost(self, lost_grace: float, batch: int = 500, *, enough: Enough = never) -> list[Recovered]:
        """Attempts whose worker's lease has ended are settled as lost. `enough` ends what comes after that early:
        marking the workers, and tidying the quarantine up."""
        ...

    def convict_overdue(self, kill_grace: float, lease: float, batch: int = 500) -> list[Recovered]:
        """The backstop: attempts far past their limit or request are FAILED / ExecutionStuck, with a hold.

        Only of workers whose lease holds: those of others are lost, not stuck.
        """
        ...

    def expire_worker(self, worker: int, seen_lease_until: datetime, reason: str) -> bool:
        """End the lease of a worker whose processes were seen to be gone; False if it renewed meanwhile."""
        ...

    def release_due(self, batch: int = 1000, *, enough: Enough = never) -> int:
        """Delayed starts and retries that came due become claimable; stays in the queue that lasted too long fail."""
        ...

    def unread_sessions(self, unread_for: float) -> list[ServerSession]:
        """Those of ours, of any process, whose answer nobody has taken for so long; they may hold locks."""
        ...

    def end_unread_session(self, session: ServerSession) -> bool:
        """If it still waits with the same answer. Its client finds a lost connection, should it ever look."""
        ...

    def lift_holds(self, margin: float, batch: int = 500) -> int:
        """Holds whose worker's lease has ended by more than the margin are removed."""
        ...

    def lift_hold(self, worker: int, job: int) -> bool:
        """By the supervisor that saw the process die: its own hold, never one that another worker wrote since."""
        ...

    def ended_before(self, retention: float, after: Ended = FIRST_ENDED, limit: int = 1000) -> list[Ended]:
        """The next jobs that ended longer ago than this, the oldest first. Takes no lock."""
        ...

    def forget_jobs(self, jobs: Sequence[int], retention: float) -> int:
        """Of these those that ended longer ago than this go, with all they left, unless somebody still needs them;
        a live job never does. Waits for nobody: what is held stays. StoreBusy if a row of one of them is."""
        ...

    def forget_ended(self, retention: float, batch: int = 1000) -> int:
        """The same for the oldest there are."""
        ...

    def forget_keys(self, batch: int = 1000) -> int:
        """Keys whose life, as given by whoever submitted them, and whose jobs are over."""
        ...

    def forget_starts(self, batch: int = 1000) -> int:
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

    def forget_workers(self, retention: float, batch: int = 100) -> int: ...

    def tend_guard(self, batch: int = 500, *, enough: Enough = never) -> int:
        """Jobs in the queue whose workflow is blacklisted fail or are held; what was held for an entry that is gone
        goes on; the jobs that were let through are judged. How many it moved."""
        ...

    def forget_marks(self, retention: float, batch: int = 1000) -> int:
        """Stuck executions that count no more, after so long at the earliest."""
        ...

    def forget_audit(self, retention: float, batch: int = 1000) -> int: ...

    def expire_waits(self, batch: int = 500, *, enough: Enough = never) -> int:
        """Waits whose time has passed: their jobs go on with what was agreed for that, or fail."""
        ...

    def next_wait(self) -> float | None:
        """In how many seconds the first wait ends, 0 if it should have; None: there is none."""
        ...

    def tend_children(self, batch: int = 100, *, enough: Enough = never) -> int:
        """Children whose parent was cancelled, or failed, are cancelled unless they were to be left."""
        ...

    def forget_letters(self, batch: int = 1000) -> int:
        """Events that nobody waited for in time."""
        ...

    def forget_orders(self, retention: float, batch: int = 1000) -> int:
        """Orders given longer ago than this, answered or not."""
        ...

    def forget_names(self, kind: NameKind, before: datetime, batch: int = 1000) -> int:
        """Look at the routes or targets that nobody has meant since this instant, the longest unmeant first, and
        forget those that no job names; how many it looked at. Never one of the last two days (`model.names`)."""
        ...

    def forget_workflows(self, retention: float, batch: int = 1000) -> int:
        """Versions that no worker has had for so long; the last one of each name stays."""
        ...

    def forget_breakers(self, batch: int = 1000) -> int:
        """Of workflows against which nothing counts any more."""
        ...

    def forget_feed(self, kept: float, batch: int = 5000) -> int:
        """Positions older than this go; a reader that still stands there is told (StaleCursor)."""
        ...

    # --- observe ----------------------------------------------------------------------------------------------
    def get(self, tenant: str, job: str) -> JobRecord | None: ...

    def find(self, tenant: str, prefix: str, limit: int = 5) -> list[str]:
        """Ids that begin with this."""
        ...

    def history(self, tenant: str, job: str, after: int = 0, limit: int = HISTORY_PAGE) -> list[EventRecord]:
        """Its events above this number, the lowest first. A job has numbered them without a gap, up to `events`."""
        ...

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

    def attempts(self, tenant: str, job: str, after: int = 0, limit: int = ATTEMPTS_PAGE) -> list[AttemptRecord]:
        """Its attempts above this token, the lowest first. They have their tokens without a gap."""
        ...

    def progress_of(self, tenant: str, job: str) -> str | None: ...

    def jobs(self, tenant: str, filter: JobFilter, limit: int = 50, after: str | None = None) -> JobPage: ...

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

    def standing(self, tenant: str, job: str) -> Facts | None:
        """How a job stands towards every gate of the claim, read at one instant (see `model.reasons`)."""
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

    def probe(self) -> None:
        """Write nothing, as every write does: fails when the store cannot be written to, even if it answers reads."""
        ...

    # --- wake-ups: hints only ---------------------------------------------------------------------------------
    def wait_for_work(self, timeout: float) -> bool:
        """Sleep until somebody hints at new work, or the timeout; True for a hint."""
        ...

    # --- schema -----------------------------------------------------------------------------------------------
    def migrate(self) -> list[str]:
        """Bring the schema up to date under a lock; the names of what was applied."""
        ...

    def schema_version(self) -> int: ...
