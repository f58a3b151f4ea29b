"""What must stop when the lease cannot be renewed. Pure: BOOTTIME in, BOOTTIME out."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    """Counted from the instant before the last successful renewal was sent: the database's clock began later."""

    cancel_at: float
    kill_at: float
    lease_ends_at: float

    @classmethod
    def after(cls, renewed_at: float, times: Times) -> Fence:
        ends = renewed_at + times.lease
        return cls(ends - times.margin - times.kill_grace, ends - times.margin, ends)
