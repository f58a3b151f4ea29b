"""What an incarnation is made of, and how it can end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import Enum, auto
from typing import Protocol

from unstuck.chance import Chance
from unstuck.clock import Clock
from unstuck.model.job import NewJob, WorkerRecord
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.records import dataclass
from unstuck.store.port import Report, WorkerPort
from unstuck.worker.flow_calls import unsigned
from unstuck.worker.held_keys import HeldKeys
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.placing import Seats
from unstuck.worker.processes import FleetPort
from unstuck.worker.readiness import Readiness
from unstuck.worker.served import Served
from unstuck.worker.view import WearLimits


class Duties(Protocol):
    """What passing time does to jobs: the janitor, as a worker sees it."""

    def tick(self, alive: Callable[[], None]) -> float:
        """`alive` is called between two batches: a sign of life."""
        ...

    def first_sweep(self, alive: Callable[[], None]) -> None: ...

    def troubles(self) -> dict[str, Trouble]:
        """The duties that fail at present."""
        ...

    def call(self, duty: str, seconds: float) -> bool:
        """That duty has its turn within these seconds. Whether that is sooner than it had planned."""
        ...


class ClaimerPort(Protocol):
    """What fills free slots. Beside the database that is a `Claimer`, elsewhere a `RemoteClaimer`."""

    @property
    def troubles(self) -> dict[str, Trouble]:
        """What does not work beside the claim: its name and its last error, until it works again."""
        ...

    def serve(self, served: Served) -> None: ...

    def shun(self, workflows: frozenset[str]) -> None:
        """Leave these to others for now."""
        ...

    def close(self) -> None:
        """No claim begins from now on."""
        ...

    def tick(self) -> float: ...


@dataclass(frozen=True, slots=True)
class ClaimerNeeds:
    """What a claimer gets from its incarnation. `before_first`: to be done before its first claim; `landed`: to be
    called when jobs are in the ledger; `report`: takes ends that could not be settled at once."""

    worker: int
    name: str
    ledger: Ledger
    pace: Pace
    before_first: Callable[[], None]
    landed: Callable[[], None]
    report: Callable[[list[Report]], None]


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """`beat_store` has a connection of its own; so has what `last_store` opens, for the last words of a worker that
    ends itself. `prepare` makes the tables of a store that has none."""

    incarnation: str
    store: WorkerPort
    beat_store: WorkerPort
    claimer: Callable[[ClaimerNeeds], ClaimerPort]
    fleet: FleetPort
    duties: Callable[[WorkerRecord], Duties]
    clock: Clock
    chance: Chance
    times: Times
    seats: Seats
    limits: WearLimits
    queues: tuple[str, ...] = ()
    name: str | None = None
    prepare: Callable[[], object] = lambda: None
    last_store: Callable[[], WorkerPort] | None = None
    readiness: Readiness = field(default_factory=Readiness)
    keys: HeldKeys = field(default_factory=HeldKeys)
    #: Signs what jobs spawn, if it can.
    sign: Callable[[NewJob], NewJob] = unsigned
    #: Takes what is to be called when a beat is worth the asking at once: its lease may be over.
    when_refused: Callable[[Callable[[], None]], None] = lambda wake: None


class End(Enum):
    """Why an incarnation is over."""

    LEFT = auto()
    FENCED = auto()
