"""The facts about one job that the rules look at: everything the gates of the claim decide by, read at one instant.

The store fills them; nothing here asks a database. One class per part: what shuts a route
(`Shut`), a process that may still run an old attempt (`BodyMark`), the target and its line, locks in the database,
what is in quarantine, workers.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Literal

from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import WaitRecord
from unstuck.model.why.codes import Code
from unstuck.records import dataclass

#: In place of a tenant: all of them.
EVERY_TENANT = "*"
#: Counts of what stands before a job stop here.
CEILING = 1000
#: Seconds. Our own sessions hold a row for milliseconds: a session that holds one for longer is in the way.
HELD_TOO_LONG = 1.0
#: Seconds. On a busy machine they hold it for as long as a store call takes; the database ends what takes longer.
#: Only a session that is beyond that (its backend or its reader is frozen) is in the way although it is ours.
OURS_TOO_LONG = 10.0


@dataclass(frozen=True, slots=True)
class Shut:
    """A pause in force or a limit that is used up, as the claim sees it. `tenant` may be '*': all of them."""

    code: Code
    kind: str
    name: str
    tenant: str
    since_at: datetime | None = None
    until_at: datetime | None = None
    by: str | None = None
    reason: str | None = None
    used: int | None = None
    most: int | None = None
    free_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class BodyMark:
    """An old body that may still live."""

    job: str
    worker: str | None
    since_at: datetime
    pid: int | None = None
    lease_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """Whose turn it is. `first`: the first job in the line. `ahead`: how many jobs are before this one in it."""

    name: str
    head: str | None = None
    head_state: JobState | None = None
    head_since: datetime | None = None
    #: Of a QUEUED head: in the future, if it waits for its next try.
    head_due_at: datetime | None = None
    head_place: int | None = None
    head_is_ready: bool = False
    first: str | None = None
    first_place: int | None = None
    blocked_by: str | None = None
    blocked_at: datetime | None = None
    blocker_error: str | None = None
    ahead: int = 0
    waiting: int = 0
    #: It may have ended already, and then nobody has noticed so far.
    pause: Shut | None = None
    #: The next ingest will look at it.
    is_expected: bool = False


@dataclass(frozen=True, slots=True)
class Locker:
    """A session of the database that holds something. What it does not show to our user is None or empty."""

    pid: int | None
    application: str = ""
    user: str = ""
    #: `idle in transaction`, `active, ClientWrite`, …
    doing: str = ""
    #: When its transaction began.
    since_at: datetime | None = None


LockKind = Literal[
    "ready",
    "job",
    "attempt",
    "worker",
    "timer",
    "wait",
    "line",
    "inbox",
    "target",
    "limit",
    "workflow",
    "table",
    "guard",
]


@dataclass(frozen=True, slots=True)
class Lock:
    """Something that a job needs and that a session has held for longer than ours ever do. `table`: where it is."""

    what: LockKind
    by: Locker
    name: str = ""
    table: str = ""
    #: Of a table.
    mode: str = ""


@dataclass(frozen=True, slots=True)
class AwaitedJob:
    job: str
    state: JobState | None


@dataclass(frozen=True, slots=True)
class SetAside:
    """Something about a job, or its target, that could not be written although the store answered."""

    duty: str
    since_at: datetime
    tries: int
    error: str


@dataclass(frozen=True, slots=True)
class FailingRole:
    """What a worker says cannot be done there beside running jobs: `settle`, `claim/inbox`, `janitor/timers`, …"""

    name: str
    failing_for: float
    failures: int
    error: str


def settle_of(job: int) -> str:
    """The role of a worker that holds the end of this job and can write it nowhere."""
    return f"settle/job {job}"


def failing_roles(said: object) -> tuple[FailingRole, ...]:
    """Read with tolerance: a worker of another version, or a broken one, may say anything."""
    return tuple(
        FailingRole(
            _words(each.get("name"), 50) or "?",
            max(0.0, _number(each.get("failing_for"))),
            max(0, int(_number(each.get("failures")))),
            _words(each.get("error"), 300),
        )
        for each in _dicts(said)[:20]
    )


def grace_left(executors: object, job: str) -> float | None:
    """Of this job, by what its worker says of its processes; read with the same tolerance."""
    bodies = [body for process in _dicts(executors) for body in _dicts(process.get("jobs")) if body.get("job") == job]
    said = bodies[0].get("grace_left") if bodies else None
    return max(0.0, _number(said)) if isinstance(said, int | float) else None


def _dicts(said: object) -> list[dict[str, object]]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def _words(said: object, most: int) -> str:
    """One line of bounded length."""
    text = " ".join(str("" if said is None else said)[: 4 * most].split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _number(said: object) -> float:
    is_number = isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said)
    return float(said) if is_number else 0.0  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker that serves the job's queue, or may do so once its app is loaded."""

    name: str
    state: str
    is_live: bool
    beat_at: datetime
    lease_until: datetime
    code_version: str
    is_loaded: bool = True
    knows_workflow: bool = True
    running: int = 0
    slots: int | None = None
    problem: str | None = None
    roles: tuple[FailingRole, ...] = ()

    @property
    def serves(self) -> bool:
        return self.is_live and self.state == "active" and self.is_loaded and self.knows_workflow


def slots_of(said: Any) -> int | None:
    """As a worker says it, which may be anything."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < 1 << 31 else None


@dataclass(frozen=True, slots=True)
class GrantFacts:
    """What the key of a live worker at a distance grants of a job."""

    tenant: bool
    queue: bool
    workflow: bool

    @property
    def covers(self) -> bool:
        return self.tenant and self.queue and self.workflow


@dataclass(frozen=True, slots=True)
class LetterFacts:
    """The dead letter of its last run. `key`: the id of the signing key that its signature names."""

    reason: str
    message: str
    created_at: datetime
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the gates look at, read at one instant. `route` and `rank`: where it stands in the queue."""

    at: datetime
    job: JobRecord
    route: int = 0
    rank: int = 0
    #: Of the timer that will bring it into the queue.
    due_at: datetime | None = None
    is_ready: bool = False
    #: Its place in its target's line; None: it does not stand there.
    place: int | None = None
    #: The person who asked a running attempt to stop; None: its worker did, or nobody.
    request_by: str | None = None
    #: Its own, else one on its target.
    body_mark: BodyMark | None = None
    target: TargetFacts | None = None
    gates: tuple[Shut, ...] = ()
    dependencies: tuple[AwaitedJob, ...] = ()
    workers: tuple[WorkerFacts, ...] = ()
    #: Live workers of any kind: every live worker sweeps.
    sweepers: int = 0
    #: Active ones that have the database themselves; and what the keys of those at a distance grant, the same once.
    beside: int = 0
    grants: tuple[GrantFacts, ...] = ()
    #: The last that registered its workflow: code version and when it was seen.
    known_version: str | None = None
    known_at: datetime | None = None
    #: Ready jobs of its route before it, and those of them with a higher priority, up to a ceiling.
    before: int = 0
    before_by_priority: int = 0
    #: What a WAITING job waits for, answered or not; of children, how many of those have not ended.
    wait: WaitRecord | None = None
    children_open: int = 0
    #: What about it, or about its target, is in quarantine, the oldest first.
    quarantine: tuple[SetAside, ...] = ()
    #: What the worker that runs it cannot do.
    worker_roles: tuple[FailingRole, ...] = ()
    #: Seconds: what that worker said at its last beat of the grace of a job that was asked to stop.
    grace_left: float | None = None
    #: What others hold of all that it needs; which of them keep it is for the rules to say.
    locks: tuple[Lock, ...] = ()
    #: Of one that has ended.
    letter: LetterFacts | None = None

    @property
    def is_served(self) -> bool:
        return any(worker.serves for worker in self.workers)

    @property
    def is_ungranted(self) -> bool:
        """Only workers at a distance live, and none of their keys lets them run it."""
        return bool(self.grants) and not self.beside and not any(grant.covers for grant in self.grants)
