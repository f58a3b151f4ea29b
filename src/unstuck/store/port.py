"""WorkerPort and Store: every question we ask a database, in the order of the road.

One verb is one transaction with one typed outcome. A verb that could not be carried out raises a StoreError:
StoreUnavailable and StoreBusy mean that nothing was written, OutcomeUnknown that the answer was lost. Every verb
is safe to repeat: submit by the job's id and key, claim by its claim id, settle by (job, token, claim id).
Tenant is a parameter wherever a person asks; workers serve all tenants by route.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

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
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import Outcome


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
    """Where a job waits: one per (tenant, queue, workflow); its number is the key of `ready`."""

    number: int
    tenant: str
    queue: str
    workflow: str


@dataclass(frozen=True, slots=True)
class Front:
    """The first job that waits on a route. Lower rank goes first: time of submission, less a minute per priority."""

    route: int
    rank: int


@dataclass(frozen=True, slots=True)
class Share:
    """How many a claim may take from a route."""

    route: int
    limit: int


@dataclass(slots=True)
class Report:
    """How an attempt ended, as its worker saw it. `output` is what the handler printed and logged, capped."""

    ref: AttemptRef
    outcome: Outcome
    duration_ms: int | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """What a running handler printed or logged since the last time, and how far it says it is (JSON text)."""

    ref: AttemptRef
    output: str | None = None
    progress: str | None = None


class Verdict(StrEnum):
    """What became of one report."""

    DONE = "done"
    FENCED = "fenced"


@dataclass(slots=True)
class Settled:
    ref: AttemptRef
    verdict: Verdict
    state: JobState | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A durable request that a running attempt has not obeyed yet."""

    ref: AttemptRef
    kind: RequestKind
    reason: str | None


@dataclass(frozen=True, slots=True)
class Beat:
    """What a beat learned. `alive` False: the lease is gone, stop everything. `gone`: attempts held here that the
    database no longer grants. `strays`: attempts it grants that are not held here; they were given back."""

    alive: bool
    lease_until: datetime | None = None
    asked: tuple[Asked, ...] = ()
    gone: tuple[AttemptRef, ...] = ()
    strays: tuple[AttemptRef, ...] = ()
    state: str = "active"


@dataclass(frozen=True, slots=True)
class Recovered:
    """A job that a sweep took from a lost worker or convicted as overdue."""

    id: str
    worker: str
    state: JobState


@dataclass(frozen=True, slots=True)
class JobFilter:
    states: tuple[JobState, ...] = ()
    workflow: str | None = None
    queue: str | None = None
    error_type: str | None = None
    newest_first: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    jobs: tuple[JobRecord, ...]
    next: str | None = None


class WorkerPort(Protocol):
    """What a worker asks: on the same machine directly, from elsewhere over HTTP."""

    def now(self) -> datetime:
        """The database's clock: leases, timers and timestamps."""
        ...

    def register_worker(self, worker: NewWorker) -> WorkerRecord: ...

    def register_workflows(self, workflows: Sequence[WorkflowRecord]) -> None: ...

    def routes(self, after: int = 0) -> list[Route]:
        """Routes with a number above `after`; routes are only ever added."""
        ...

    def fronts(self, after: int = 0, limit: int = 1000) -> list[Front]:
        """The routes above `after` on which work is due, each with its first job; reads one row per route."""
        ...

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> list[ClaimedJob]:
        """Open attempts, never more than each share, only while the worker's lease holds. A repeated claim id
        answers with the same attempts that are still open, and claims nothing new."""
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
        claim under way, nor being settled, goes back uncharged."""
        ...

    def asked(self, worker: int) -> list[Asked]:
        """Requests for this worker's running attempts: the cancel poll, cheaper than a beat."""
        ...

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str | None = None) -> Verdict:
        """Make the worker's own request (timeout, drain) durable before the handler hears of it."""
        ...

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        """End attempts, each under its fence; the pending request is read in the same transaction."""
        ...

    def remark(self, remarks: Sequence[Remark]) -> list[Verdict]:
        """Keep what running attempts said, each under its fence: output is appended and capped, progress replaced.

        A progress that cannot be stored is left out; nothing else of its batch is.
        """
        ...

    def unregister_worker(self, worker: int) -> None:
        """It leaves in order: what it still holds goes back uncharged and its lease ends now."""
        ...

    def close(self) -> None: ...


class Store(WorkerPort, Protocol):
    """All the verbs."""

    # --- submit -----------------------------------------------------------------------------------------------
    def submit(self, jobs: Sequence[NewJob]) -> list[Submitted]:
        """All or nothing. Raises KeyConflict when a key is known with another fingerprint."""
        ...

    def workflow(self, name: str) -> WorkflowRecord | None: ...

    def workflows(self) -> list[WorkflowRecord]: ...

    # --- control ----------------------------------------------------------------------------------------------
    def cancel(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        """At rest: CANCELLED in this transaction. Running: the request is durable. Ended: IllegalMove."""
        ...

    def interrupt(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord: ...

    def resume(self, tenant: str, job: str, by: str, *, from_start: bool = False) -> JobRecord:
        """A new, clean run of a PAUSED, FAILED, TIMEOUT or CANCELLED job, at its old age."""
        ...

    def resolve(self, tenant: str, job: str, by: str, result: str) -> JobRecord:
        """A person supplies the result: a new run that ends COMPLETED at once."""
        ...

    def hurry(self, tenant: str, job: str, by: str) -> JobRecord:
        """Make a QUEUED job that waits for its time due now."""
        ...

    # --- time -------------------------------------------------------------------------------------------------
    def recover_lost(self, lost_grace: float, batch: int = 500) -> list[Recovered]:
        """Attempts whose worker's lease has ended are settled as lost."""
        ...

    def convict_overdue(self, kill_grace: float, lease: float, batch: int = 500) -> list[Recovered]:
        """The backstop: attempts far past their limit or request are FAILED / ExecutionStuck, with a hold.

        Only of workers whose lease holds: those of others are lost, not stuck.
        """
        ...

    def expire_worker(self, worker: int, seen_lease_until: datetime, reason: str) -> bool:
        """End the lease of a worker whose processes were seen to be gone; False if it renewed meanwhile."""
        ...

    def release_due(self, batch: int = 1000) -> int:
        """Delayed starts and retries that came due become claimable; stays in the queue that lasted too long fail."""
        ...

    def lift_holds(self, margin: float, batch: int = 500) -> int:
        """Holds whose worker's lease has ended by more than the margin are removed."""
        ...

    def lift_hold(self, worker: int, job: int) -> bool:
        """By the supervisor that saw the process die: its own hold, never one that another worker wrote since."""
        ...

    def forget_ended(self, retention: float, batch: int = 1000) -> int:
        """Ended jobs older than the retention go, with their history; a live job never does."""
        ...

    def forget_keys(self, retention: float, batch: int = 1000) -> int: ...

    def forget_workers(self, retention: float, batch: int = 100) -> int: ...

    # --- observe ----------------------------------------------------------------------------------------------
    def get(self, tenant: str, job: str) -> JobRecord | None: ...

    def find(self, tenant: str, prefix: str, limit: int = 5) -> list[str]:
        """Ids that begin with this."""
        ...

    def history(self, tenant: str, job: str) -> list[EventRecord]: ...

    def attempts(self, tenant: str, job: str) -> list[AttemptRecord]: ...

    def progress_of(self, tenant: str, job: str) -> str | None: ...

    def jobs(self, tenant: str, filter: JobFilter, limit: int = 50, after: str | None = None) -> Page: ...

    def counts(self, tenant: str | None = None, ceiling: int = 10_000) -> dict[JobState, int]:
        """Jobs per state, each counted up to the ceiling (a value equal to it means: at least that many)."""
        ...

    def workers(self) -> list[WorkerRecord]: ...

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
