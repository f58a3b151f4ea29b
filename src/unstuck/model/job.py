"""JobRecord, AttemptRecord and their kin: values, as the store gives them out.

Those that are made for every single job (AttemptRef, ClaimedJob, NewJob, and Report, Settled, Finished elsewhere) are
not frozen dataclasses: freezing alone cost a fifth of the supervisor's time per job. Nobody changes them anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, overload

from unstuck.model.ends import Follows
from unstuck.model.lifecycle import JobState, RequestKind, Shown
from unstuck.model.logs import as_text
from unstuck.model.policy import Policy
from unstuck.records import dataclass

AfterFailure = Literal["fail", "run"]
#: What of the engine makes jobs by itself. Whoever adds such a maker names it here, and lets its jobs be signed by
#: `SigningDoor.made`.
Maker = Literal["parent", "replay", "schedule", "hook", "end"]

DEFAULT_TENANT = "default"
DEFAULT_QUEUE = "default"


class AttemptRef(NamedTuple):
    """The name of one attempt, and the fence: every write of a worker carries all three."""

    job: int
    token: int
    claim: str


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job as it stands. `number` is the store's own key, `id` the one people use."""

    number: int
    id: str
    tenant: str
    queue: str
    workflow: str
    target: str | None
    priority: int
    state: JobState
    run: int
    token: int
    payload: str
    policy: Policy
    created_at: datetime
    available_at: datetime
    events: int
    failures: int = 0
    losses: int = 0
    suspects: int = 0
    alone: bool = False
    key: str | None = None
    request: RequestKind | None = None
    requested_at: datetime | None = None
    request_reason: str | None = None
    claim: str | None = None
    worker: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    lease_until: datetime | None = None
    finished_at: datetime | None = None
    duration_ms: int | None = None
    result: str | None = None
    late: bool = False
    error_type: str | None = None
    error_message: str | None = None
    held: bool = False
    limit_key: str | None = None
    tags: tuple[str, ...] = ()
    #: PENDING because a person must release it (it may wait for other jobs besides).
    on_hold: bool = False
    #: A handler of it has begun at some time.
    started: bool = False
    #: It ended or paused on its target, and nothing runs there before it is resumed, resolved or skipped.
    is_blocker: bool = False
    #: Another job blocks its target: it cannot run there before that one is resumed, resolved or skipped.
    is_blocked: bool = False
    #: The job whose call this one repeats.
    replay_of: str | None = None
    #: What of the engine made it, a Maker; None: a caller submitted it.
    made_by: str | None = None
    #: The trace that it belongs to, and the span of its last attempt that ended, as `model.trace` writes them.
    trace: str | None = None
    span: str | None = None
    #: The envelope that it is stored with, as `model.signing` writes it; None: nobody signed it.
    signature: str | None = None


def shown_state(record: JobRecord, now: datetime) -> JobState | Shown:
    """The stored state, said more precisely where that helps; list_rows.sql says the same."""
    match record.state:
        case JobState.QUEUED if record.available_at > now:
            return Shown.RETRYING if record.failures or record.losses else Shown.SCHEDULED
        case JobState.QUEUED if record.is_blocked:
            return Shown.BLOCKED
        case JobState.RUNNING if record.request is RequestKind.CANCEL:
            return Shown.CANCELLING
        case JobState.FAILED if record.held:
            return Shown.STUCK
        case stored:
            return stored


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One line of a job's history, numbered from 1 without gaps."""

    job: str
    number: int
    kind: str
    at: datetime
    run: int
    token: int
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One claim of a job and how it ended, read off its history."""

    token: int
    run: int
    worker: str
    claimed_at: datetime
    code_version: str | None = None
    ended_at: datetime | None = None
    outcome: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    duration_ms: int | None = None
    stack: str | None = None
    #: What it printed and logged as it is stored, records in their frames: `model.logs.split` reads it.
    framed: str | None = None

    @property
    def output(self) -> str | None:
        """What it printed and logged, for people."""
        return None if self.framed is None else as_text(self.framed)


class ClaimedJob(NamedTuple):
    """What a worker gets: enough to run it and to settle it, nothing it would have to ask for again."""

    ref: AttemptRef
    id: str
    run: int
    tenant: str
    queue: str
    workflow: str
    payload: str
    policy: Policy
    attempt: int
    alone: bool
    rank: int = 0
    route: int = 0
    has_target: bool = False
    #: The trace that it belongs to, and the span of the attempt before, as `model.trace` writes them.
    trace: str | None = None
    span: str | None = None


@dataclass(slots=True)
class NewJob:
    """What submit stores: already checked, its route resolved."""

    id: str
    tenant: str
    queue: str
    workflow: str
    payload: str
    policy: Policy
    priority: int = 0
    delay: float = 0.0
    start_at: datetime | None = None
    key: str | None = None
    fingerprint: str | None = None
    target: str | None = None
    tags: tuple[str, ...] = ()
    limit_key: str | None = None
    on_hold: bool = False
    #: Ids of jobs of the same tenant: PENDING until all of them have ended.
    after: tuple[str, ...] = ()
    after_failure: AfterFailure = "fail"
    #: The job whose call this one repeats.
    replay_of: str | None = None
    #: The person or program that asked for it, for the audit.
    replay_by: str | None = None
    #: What of the engine makes it; None: a caller submits it. No face takes this from a caller.
    made_by: Maker | None = None
    #: What decorator and caller say of its policy, as `said` writes it: the rest comes from the workflow's row, and
    #: from `policy` where there is none yet. None: it has exactly this policy.
    said: str | None = None
    #: The longest timeout that may be said while there is no such row.
    max_timeout: float | None = None
    #: The caller chose the id: then a job that has it already must be the same call.
    has_given_id: bool = False
    #: The trace that it is submitted in, and the span that its first attempt links to, as `model.trace` writes them.
    trace: str | None = None
    span: str | None = None
    #: Its envelope as `model.signing` writes it, and until when its signature lives, in microseconds of Unix time.
    signature: str | None = None
    signed_until: int | None = None


def made(job: NewJob, by: Maker) -> NewJob:
    """As the engine makes it. What whoever asked for it says of where it comes from, and of who signed it, counts for
    nothing: a handler asks for children, and holds no keys."""
    return replace(job, made_by=by, signature=None, signed_until=None)


class Alike(Sequence[NewJob]):
    """New jobs that differ in nothing but their ids and payloads, and in the signatures over these. What they share
    is asked of `pattern`, once for all of them; each is made only for those who want to see it. `trace`: what they
    are submitted in, which the next jobs of the same pattern are not; the same is true of `signed_until`."""

    __slots__ = ("ids", "pattern", "payloads", "signatures", "signed_until", "trace")

    def __init__(
        self,
        pattern: NewJob,
        ids: Sequence[str],
        payloads: Sequence[str],
        trace: str | None = None,
        signatures: Sequence[str] | None = None,
        signed_until: int | None = None,
    ) -> None:
        self.pattern = pattern
        self.ids = ids
        self.payloads = payloads
        self.trace = trace
        self.signatures = signatures
        self.signed_until = signed_until

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> NewJob: ...
    @overload
    def __getitem__(self, place: slice) -> Alike: ...
    def __getitem__(self, place: int | slice) -> NewJob | Alike:
        signed = self.signatures
        if isinstance(place, slice):
            some = None if signed is None else signed[place]
            return Alike(self.pattern, self.ids[place], self.payloads[place], self.trace, some, self.signed_until)
        return replace(
            self.pattern,
            id=self.ids[place],
            payload=self.payloads[place],
            trace=self.trace,
            signature=None if signed is None else signed[place],
            signed_until=self.signed_until,
        )


def ids_of(jobs: Sequence[NewJob]) -> Sequence[str]:
    return jobs.ids if isinstance(jobs, Alike) else [job.id for job in jobs]


def payloads_of(jobs: Sequence[NewJob]) -> Sequence[str]:
    return jobs.payloads if isinstance(jobs, Alike) else [job.payload for job in jobs]


def traces_of(jobs: Sequence[NewJob]) -> Sequence[str | None] | None:
    """None: nobody traces them."""
    if isinstance(jobs, Alike):
        return None if jobs.trace is None else [jobs.trace] * len(jobs)
    traces = [job.trace for job in jobs]
    return traces if any(traces) else None


def signatures_of(jobs: Sequence[NewJob]) -> tuple[Sequence[str | None], Sequence[int | None]] | None:
    """Their envelopes, and until when their signatures live. None: nobody has signed any of them."""
    if isinstance(jobs, Alike):
        return None if jobs.signatures is None else (jobs.signatures, [jobs.signed_until] * len(jobs))
    signatures = [job.signature for job in jobs]
    return (signatures, [job.signed_until for job in jobs]) if any(signatures) else None


def patterns_of(jobs: Sequence[NewJob]) -> Sequence[NewJob]:
    """Jobs of which is true what is true of all of them, but for ids and payloads."""
    return [jobs.pattern] if isinstance(jobs, Alike) else jobs


@dataclass(frozen=True, slots=True)
class WorkflowRecord:
    """A workflow as its workers registered it: every door validates and routes by this row."""

    name: str
    code_version: str
    queue: str
    policy: Policy
    schema: dict[str, Any]
    target: str | None = None
    limit_key: str | None = None
    #: Limits by code, of all its jobs together and of each limit key; what an operator sets in their place wins.
    concurrency: int | None = None
    rate: str | None = None
    key_concurrency: int | None = None
    key_rate: str | None = None
    registered_at: datetime | None = None
    doc: str | None = None
    #: The longest timeout that its jobs may ask for.
    max_timeout: float | None = None
    #: Of `policy` what the decorator says itself; a row does not know.
    said: dict[str, Any] = field(default_factory=dict)
    #: What this version hides of its jobs' data from those who are no admins.
    redact: tuple[str, ...] = ()
    #: Its code says that nothing of it runs unsigned; a row does not know, and nobody who verifies would ask it.
    require_signature: bool = False
    #: Its jobs are made of the ends of others; a row does not know.
    follows: Follows | None = None
    #: Whose jobs go by it: "*" all tenants', else those of the one tenant whose own worker registered it.
    tenant: str = "*"


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker incarnation as others see it."""

    number: int
    incarnation: str
    name: str
    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    pid_start: int
    state: str
    queues: tuple[str, ...]
    code_version: str
    started_at: datetime
    heartbeat_at: datetime
    lease_until: datetime
    running: int = 0
    info: dict[str, Any] = field(default_factory=dict)
    #: What it claims: {"queues": […], "workflows": […]}, of which "app", and of which "tenant" alone; empty until its
    #: app is imported.
    serves: dict[str, Any] = field(default_factory=dict)

    @property
    def tenant(self) -> str | None:
        """The only one whose jobs it takes; None: everybody's."""
        return self.serves.get("tenant")
