"""Workers at a distance: what a server asks for those that have no database, and what they ask of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from unstuck.model.job import AttemptRef, ClaimedJob, WorkerRecord, WorkflowRecord
from unstuck.model.keys import Within
from unstuck.model.schedules import DeclaredSchedule, ScheduleSpec
from unstuck.records import dataclass
from unstuck.store.port.worker import Asked, NewWorker, Verdict, WorkerOrder


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a worker has room for: `slots` for anything, `ahead` for what is `quick`, `solo` for what wants a process
    of its own (`alone`); `in_order`: it takes one after the other. `wait`: seconds for which it waits if there is
    nothing. `signed`: those of its workflows of which its code takes signed jobs alone; its server verifies them."""

    slots: int
    workflows: tuple[str, ...]
    queues: tuple[str, ...]
    ahead: int = 0
    solo: int = 0
    in_order: bool = False
    quick: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    wait: float = 0.0
    signed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlNews:
    """What is asked of a worker: of its attempts, and of itself."""

    asked: tuple[Asked, ...] = ()
    orders: tuple[WorkerOrder, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key lets its worker run: of one tenant (None: of all), and of some queues and workflows."""

    tenant: str | None = None
    within: Within = field(default_factory=Within)

    def covers(self, workflow: WorkflowRecord) -> bool:
        return self.within.holds(workflow.queue, workflow.name)

    def covers_schedule(self, declared: DeclaredSchedule, queues: Mapping[str, str]) -> bool:
        """`queues`: those of the workflows that it serves. What cannot be read is left to who can refuse it."""
        if self.tenant not in (None, declared.tenant):
            return False
        try:
            spec = ScheduleSpec.from_json(declared.body)
        except (ValueError, TypeError, AttributeError):
            return False
        return self.within.holds(spec.queue or queues.get(spec.workflow), spec.workflow)


class RemotePort(Protocol):
    """What a server asks the database on behalf of workers at a distance."""

    def register_remote_worker(self, worker: NewWorker) -> WorkerRecord:
        """Like `register_worker`, of another process: nothing is remembered of its clock."""
        ...

    def standing_of_key(self, incarnation: str, most: int) -> int:
        """How many others that have not ended are of this one's key, as far as `most`."""
        ...

    def incarnation_of(self, worker: int) -> str | None: ...

    def tell_refused_worker(self, by: str, tenant: str, reason: str, repeated: int) -> None:
        """A line in the audit: what a worker at a distance asked and may not. `repeated`: how often it was refused
        since the line before."""
        ...

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
        """They heard of these: from now on `claim` is their fence. FENCED: it was returned before. Safe to repeat."""
        ...

    def payload_of(self, ref: AttemptRef) -> str | None:
        """None: fenced."""
        ...

    def return_offers(self, overdue: float, batch: int = 500, *, worker: int | None = None) -> int:
        """Attempts that were offered so many seconds ago and nobody has acknowledged go back uncharged; of one
        worker, or of all."""
        ...

    def control_news(self, workers: Sequence[int]) -> Mapping[int, ControlNews]:
        """Of those who are asked anything; two reads, however many workers."""
        ...


class OffersPort(Protocol):
    """What a claimer without a database asks its server."""

    @property
    def grant(self) -> Grant:
        """Known once the worker is registered."""
        ...

    def register_workflows(
        self,
        workflows: Sequence[WorkflowRecord],
        *,
        worker: int | None = None,
        queues: Sequence[str] = (),
        app: str | None = None,
    ) -> frozenset[str]: ...

    def declare_schedules(
        self, app: str, origin: str, code_version: str, declared: Sequence[DeclaredSchedule]
    ) -> list[str]: ...

    def take(self, worker: int, claim: str, wanted: Wanted, *, again: bool = False) -> list[ClaimedJob]:
        """Jobs that the server chose and offers under this claim id; none: there was nothing while it waited.
        `again`: an answer to the same claim id may have been lost. A payload that is too much for an answer that must
        be acknowledged in seconds is left out (`model/offers.py`): `payloads` has it."""
        ...

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]: ...

    def payloads(self, worker: int, refs: Sequence[AttemptRef]) -> list[str | None]:
        """Of the first of these, as many as fit into one answer, at least one; None: fenced."""
        ...
