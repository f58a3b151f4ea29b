"""Who gets the free slots: divide(…) is pure; the claimer keeps the memory of whose turn it was.

Tenants take turns, the one served longest ago first, so that one with a hundred thousand jobs cannot starve one with
a single job. Within a tenant the routes' first jobs compete by rank (age and priority).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unstuck.store.port import Share


@dataclass(frozen=True, slots=True)
class Bid:
    """A route with work due that this worker may take. `is_solo`: its jobs want a process each."""

    route: int
    tenant: str
    rank: int
    is_quick: bool = False
    is_solo: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """Free slots for anything, what may be fetched ahead of quick workflows, and processes for a single job each."""

    slots: int
    ahead: int = 0
    solo: int = 0

    @property
    def total(self) -> int:
        return self.slots + self.ahead + self.solo

    def less(self, taken: int) -> Room:
        """After so many more, whoever they are: counted against everything, until the next count is made."""
        beyond = max(0, taken - self.slots)
        return Room(max(0, self.slots - taken), max(0, self.ahead - beyond), max(0, self.solo - taken))


def divide(bids: Sequence[Bid], room: Room, turns: dict[str, int]) -> list[Share]:
    """Free slots over all that can use them; what may be fetched ahead over the quick ones only."""
    granted: dict[int, int] = {}
    order = _in_turn(bids, turns)
    _deal([bid for bid in order if not bid.is_solo], room.slots, granted)
    _deal([bid for bid in order if bid.is_quick and not bid.is_solo], room.ahead, granted)
    _deal([bid for bid in order if bid.is_solo], room.solo, granted)
    return [Share(route, limit) for route, limit in granted.items() if limit > 0]


def _in_turn(bids: Sequence[Bid], turns: dict[str, int]) -> list[Bid]:
    """Tenants by turn; round robin between them, each tenant's own routes by rank."""
    by_tenant: dict[str, list[Bid]] = {}
    for bid in sorted(bids, key=lambda b: (b.rank, b.route)):
        by_tenant.setdefault(bid.tenant, []).append(bid)
    queues = [by_tenant[t] for t in sorted(by_tenant, key=lambda t: (turns.get(t, -1), by_tenant[t][0].rank))]
    longest = max(map(len, queues), default=0)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def _deal(order: Sequence[Bid], slots: int, granted: dict[int, int]) -> None:
    """Evenly, the remainder to the first."""
    if slots <= 0 or not order:
        return
    each, rest = divmod(slots, len(order))
    for place, bid in enumerate(order):
        granted[bid.route] = granted.get(bid.route, 0) + each + (place < rest)
