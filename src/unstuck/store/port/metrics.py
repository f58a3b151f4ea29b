"""The metrics' port: what a scrape asks, each a bounded question, whatever the database holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from unstuck.model.totals import EndName, EndTotal
from unstuck.records import dataclass
from unstuck.store.port.sweeps import Waiting


@dataclass(frozen=True, slots=True)
class JobStand:
    """So many jobs at a place: a state, or of QUEUED ones READY, LATER (they wait for a time) or LINE (for their turn
    on a target)."""

    place: str
    jobs: int
    queue: str = ""
    workflow: str = ""
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class JobStands:
    """All jobs together, and of the fullest names and tenants those of each. `is_cut`: places where there may be more
    jobs than were counted."""

    together: tuple[JobStand, ...]
    names: tuple[JobStand, ...]
    tenants: tuple[JobStand, ...]
    is_cut: frozenset[str]


@dataclass(frozen=True, slots=True)
class TroubleStand:
    """So many things of a kind that somebody should look at, the oldest of them since then."""

    what: str
    kind: str
    number: int
    since_at: datetime | None


class MetricsPort(Protocol):
    """`tenant` None: everybody's together."""

    def job_stands(self, tenant: str | None, names: int = 1000) -> JobStands:
        """Of jobs that have not ended, and of dead ones; so many names and tenants."""
        ...

    def longest_waiting(self, tenant: str | None, routes: int = 1000, each: int = 100) -> list[Waiting]:
        """QUEUED jobs that are due: the first of each route, and of the routes that have waited longest as many
        more; the oldest first."""
        ...

    def past_bound(self, tenant: str | None, late: float, backstop: float) -> dict[str, int]:
        """How many attempts and timers no sweep has seen to, as `overdue` has it: by what should have happened."""
        ...

    def resting_since(self, tenant: str | None, most: int = 100) -> dict[tuple[str, str], datetime]:
        """By state and queue: when the oldest of those that rest came to rest, of the first thousand; so many queues
        of each state, those with the oldest."""
        ...

    def trouble_stands(self, tenant: str | None) -> list[TroubleStand]: ...

    def end_totals(self, tenant: str | None, most: int = 1000) -> tuple[EndTotal, Mapping[EndName, EndTotal]]:
        """Of all names together, and the largest by themselves, the largest first. Counted with the series."""
        ...

    def forget_totals(self, retention: float, batch: int = 1000, past: int = 0) -> int: ...
