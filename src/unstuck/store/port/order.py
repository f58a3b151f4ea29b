"""The order's port: pauses, limits, tenants and targets."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, Literal, Protocol

from unstuck.model.guard import EVERY as EVERY
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass

# EVERY, in place of a tenant: all of them (a limit then counts them together). As the name of a tenant or key limit:
# each tenant or key by itself.
PauseKind = Literal["queue", "workflow", "tenant", "target"]
#: workflow_key: each limit key of a workflow by itself, of that workflow's jobs alone; kind key counts everybody's.
LimitKind = Literal["workflow", "workflow_key", "queue", "tenant", "key"]
LimitPart = Literal["concurrency", "rate", "max_queued"]

#: The `by` of a limit that stands in the code; a limit that a person set goes before it.
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


#: How far the jobs that wait for a target are counted.
TARGET_CEILING = 10_000


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


class OrderPort(Protocol):
    """Who runs next, as operators see and change it."""

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
        """The jobs that wait for their turn on this target, the next first; not the one that has the turn."""
        ...
