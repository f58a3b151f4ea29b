"""Workers at a distance: what a server asks for those that have no database, and what they ask of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from unstuck.model.job import AttemptRef, ClaimedJob, WorkerRecord, WorkflowRecord
from unstuck.store.port.worker import Asked, NewWorker, Verdict, WorkerOrder


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a worker has room for: `slots` for anything, `ahead` for what is `quick`, `solo` for what wants a process
    of its own (`alone`); `in_order`: it takes one after the other. `wait`: seconds for which it waits if there is
    nothing."""

    slots: int
    workflows: tuple[str, ...]
    queues: tuple[str, ...]
    ahead: int = 0
    solo: int = 0
    in_order: bool = False
    quick: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class ControlNews:
    """What is asked of a worker: of its attempts, and of itself."""

    asked: tuple[Asked, ...] = ()
    orders: tuple[WorkerOrder, ...] = ()


class RemotePort(Protocol):
    """What a server asks the database on behalf of workers at a distance."""

    def register_remote_worker(self, worker: NewWorker) -> WorkerRecord:
        """Like `register_worker`, of another process: nothing is remembered of its clock."""
        ...

    def incarnation_of(self, worker: int) -> str | None: ...

    def set_served(
        self, worker: int, queues: Sequence[str], workflows: Sequence[str], code_version: str | None
    ) -> None:
        """What it claims from now on (see `why`), where its workflows' rows are not its own to write."""
        ...

    def is_held(self, worker: int, ref: AttemptRef) -> bool:
        """Whether this is an open attempt of this worker."""
        ...

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
        """They heard of these: from now on `claim` is their fence. FENCED: it was returned before. Safe to repeat."""
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

    def register_workflows(
        self, workflows: Sequence[WorkflowRecord], *, worker: int | None = None, queues: Sequence[str] = ()
    ) -> frozenset[str]: ...

    def take(self, worker: int, claim: str, wanted: Wanted, *, again: bool = False) -> list[ClaimedJob]:
        """Jobs that the server chose and offers under this claim id; none: there was nothing while it waited.
        `again`: an answer to the same claim id may have been lost."""
        ...

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]: ...
