"""The jobs' port: submit them, read them, and ask something of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from unstuck.model.call import WantedArgument
from unstuck.model.guard import EVERY
from unstuck.model.job import AttemptRecord, AttemptRef, EventRecord, JobRecord, NewJob, WorkflowRecord
from unstuck.model.keys import Within
from unstuck.model.lifecycle import JobState, Shown
from unstuck.model.redaction import Redactions
from unstuck.records import dataclass
from unstuck.store.port.dead_letters import LetterTerms
from unstuck.store.port.worker import OrderKind, WorkerOrder


class Submitted(NamedTuple):
    """`created` is False when the idempotency key (or the id) was known: then this is the earlier job."""

    id: str
    created: bool


class SeenJob(NamedTuple):
    """A job, when it was so, and whether something of its data is hidden from most."""

    job: JobRecord
    at: datetime
    is_redacted: bool


#: A job that is retried for days has thousands of both; an attempt may have printed 64 KiB and left a stack as long.
HISTORY_PAGE: Final = 1000
ATTEMPTS_PAGE: Final = 100
#: A page comes back short once what it tells has so many characters: arguments and results of jobs, what attempts
#: printed, their stacks, the data of events. A hundred thousand jobs of a megabyte each are no answer that anybody
#: can hold.
MOST_CHARACTERS: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs a job at this instant: the worker's number, and the attempt."""

    worker: int
    ref: AttemptRef


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
    #: A bounded number of payloads is read for it: a page says how many it looked at.
    argument: WantedArgument | None = None
    #: Only jobs with a dead letter, and such a one.
    letter: LetterTerms | None = None
    #: Nothing outside it: what its asker may know of. None: everything.
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    """`next` is the cursor of the page after this one; a page may be short and still have one. `looked`: how many
    payloads were read, of a search by argument. `is_heavy`: it holds as much text as a page may."""

    jobs: tuple[JobRecord, ...]
    next: str | None = None
    looked: int = 0
    is_heavy: bool = False

    @property
    def is_complete(self) -> bool:
        """There is nothing behind it."""
        return self.next is None


class JobsPort(Protocol):
    """Jobs, as those who ask for them see them."""

    def submit(self, jobs: Sequence[NewJob], patience: float | None = None) -> list[Submitted]:
        """All or nothing. Raises KeyConflict when a key is known with another fingerprint, WorkflowBlacklisted for a
        workflow of which nothing is accepted. `patience`: seconds for which it waits for a row that somebody else
        holds; then StoreBusy."""
        ...

    def workflow(self, name: str, tenant: str = EVERY) -> WorkflowRecord | None:
        """The row that the doors go by for this tenant's jobs: one that is its own, else that of all tenants."""
        ...

    def workflows(self, tenant: str = EVERY) -> list[WorkflowRecord]: ...

    def redactions(self, tenant: str | None = None) -> Redactions:
        """What is hidden of the data of workflows: all that any registered version says, of this tenant or of all of
        them; None: anybody's."""
        ...

    def cancel(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord:
        """At rest: CANCELLED in this transaction. Running: the request is durable. Ended: IllegalMove."""
        ...

    def interrupt(self, tenant: str, job: str, by: str, reason: str | None = None) -> JobRecord: ...

    def resume(self, tenant: str, job: str, by: str, *, from_start: bool = False) -> JobRecord:
        """A new, clean run of a PAUSED, FAILED, TIMEOUT or CANCELLED job, at its old age. WorkflowBlacklisted,
        as also for run_now and release."""
        ...

    def resolve(self, tenant: str, job: str, by: str, result: str) -> JobRecord:
        """A person supplies the result: a new run that ends COMPLETED at once."""
        ...

    def run_now(self, tenant: str, job: str, by: str) -> JobRecord:
        """Make a QUEUED job that waits for its time due now."""
        ...

    def reprioritise(self, tenant: str, job: str, priority: int, by: str) -> JobRecord:
        """Give a job that waits another priority, and the place in its queue and line that goes with it; it keeps its
        age. IllegalMove for one that runs or has ended."""
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

    def get(self, tenant: str, job: str) -> JobRecord | None: ...

    def get_many(self, jobs: Sequence[str]) -> dict[str, SeenJob]:
        """Those of them that there are, by id, of all tenants: who asks looks whose they are."""
        ...

    def find(self, tenant: str | None, prefix: str, limit: int = 5, within: Within | None = None) -> list[str]:
        """Ids that begin with this, of jobs that are `within`; of all tenants with None."""
        ...

    def owner(self, job: str) -> str | None:
        """The tenant whose job it is: an id is one job's."""
        ...

    def history(self, tenant: str, job: str, after: int = 0, limit: int = HISTORY_PAGE) -> list[EventRecord]:
        """Its events above this number, the lowest first. A job has numbered them without a gap, up to `events`."""
        ...

    def attempts(self, tenant: str, job: str, after: int = 0, limit: int = ATTEMPTS_PAGE) -> list[AttemptRecord]:
        """Its attempts above this token, the lowest first. They have their tokens without a gap."""
        ...

    def progress_of(self, tenant: str, job: str) -> str | None: ...

    def progress_of_jobs(self, tenant: str, jobs: Sequence[str], longest: int) -> dict[str, str]:
        """By job, of those that told one of at most so many characters."""
        ...

    def jobs(self, tenant: str | None, filter: JobFilter, limit: int = 50, after: str | None = None) -> JobPage:
        """Of one tenant, or with None of all. What no index of theirs answers is looked for among the jobs
        themselves, a bounded number of them at a time: a page may be short and have a `next`."""
        ...
