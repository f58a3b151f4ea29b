"""Which tenants and routes get the free slots: `divide` and `Turns` are pure; the claimer keeps the Turns.

Tenants share by weight: every job that a tenant gets moves its own counter ahead by 1/weight, and the tenant whose
counter is furthest behind goes next. So a tenant with a hundred thousand jobs cannot starve a tenant with a single
job. A tenant that is new, or was idle, starts level with those that wait now: unused turns are not saved up. Within
a tenant the routes' first jobs compete by rank (age and priority). A worker with one slot takes a tenant's jobs in
exactly that order: of the route with the first job alone, as far as the first job of the next. With more slots its
routes share them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from unstuck.records import dataclass
from unstuck.store.port import Share

#: Marks are kept for tenants that are ahead of the others; far more than are ever ahead at once.
_MOST_MARKS = 10_000


@dataclass(frozen=True, slots=True)
class Bid:
    """A route with work due that this worker may take. `is_solo`: its jobs want a process each. `is_limited`: what is
    taken of it counts at once, so nothing of it is fetched ahead. `job`: its first, of one rank the lower goes first.
    `floor`: what lies before was taken."""

    route: int
    tenant: str
    rank: int
    is_quick: bool = False
    is_solo: bool = False
    is_limited: bool = False
    floor: tuple[int, int] | None = None
    job: int = 0

    @property
    def place(self) -> tuple[int, int]:
        return self.rank, self.job


@dataclass(frozen=True, slots=True)
class FreeRoom:
    """Free slots for anything, what may be fetched ahead of quick workflows, and processes for a single job each.
    `in_order`: one after the other, because there is one slot in all."""

    slots: int
    ahead: int = 0
    solo: int = 0
    in_order: bool = False

    @property
    def total(self) -> int:
        return self.slots + self.ahead + self.solo

    def less(self, taken: int) -> FreeRoom:
        """After so many more jobs of any kind: counted against every kind of room, until the next count is made."""
        beyond = max(0, taken - self.slots)
        slots, ahead, solo = self.slots - taken, self.ahead - beyond, self.solo - taken
        return FreeRoom(max(0, slots), max(0, ahead), max(0, solo), self.in_order)


@dataclass(slots=True)
class Turns:
    """How far each tenant has come. `level`: where the tenants that wait longest are; no tenant starts behind it."""

    weights: Mapping[str, int] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    level: float = 0.0

    def mark(self, tenant: str) -> float:
        return max(self.level, self.marks.get(tenant, self.level))

    def step(self, tenant: str) -> float:
        return 1.0 / max(1, self.weights.get(tenant, 1))

    def served(self, tried: Iterable[str], got: Mapping[str, int]) -> None:
        """After a claim: a tenant that got nothing still had a turn, or it would be asked for ever."""
        before = {tenant: self.mark(tenant) for tenant in tried}
        if not before:
            return
        self.level = min(before.values())
        for tenant, mark in before.items():
            self.marks[tenant] = mark + self.step(tenant) * max(1, got.get(tenant, 0))
        if len(self.marks) > _MOST_MARKS:
            self.marks = {tenant: mark for tenant, mark in self.marks.items() if mark > self.level}


def divide(bids: Sequence[Bid], room: FreeRoom, turns: Turns) -> list[Share]:
    """Free slots over all that can use them; what may be fetched ahead over the quick ones only."""
    deal = _Deal(turns)
    order = sorted(bids, key=lambda bid: (*bid.place, bid.route))
    ends: dict[int, tuple[int, int]] = {}
    if room.in_order:
        order, ends = _first_of_each(order)
    deal.out([bid for bid in order if not bid.is_solo], room.slots)
    deal.out([bid for bid in order if bid.is_quick and not bid.is_solo and not bid.is_limited], room.ahead)
    deal.out([bid for bid in order if bid.is_solo], room.solo)
    of_route = {bid.route: bid for bid in bids}
    return [
        Share(route, limit, of_route[route].floor, of_route[route].is_limited, ends.get(route))
        for route, limit in deal.granted.items()
        if limit > 0
    ]


def _first_of_each(order: Sequence[Bid]) -> tuple[list[Bid], dict[int, tuple[int, int]]]:
    """Of each tenant the route whose turn it is, and where that of its next begins."""
    first: dict[tuple[str, bool], Bid] = {}
    ends: dict[int, tuple[int, int]] = {}
    for bid in order:
        before = first.setdefault((bid.tenant, bid.is_solo), bid)
        if before is not bid:
            ends.setdefault(before.route, bid.place)
    return list(first.values()), ends


class _Deal:
    """One division: slots go out one by one, marks move ahead as if each brought a job."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._marks: dict[str, float] = {}
        self.granted: dict[int, int] = {}

    def out(self, order: Sequence[Bid], slots: int) -> None:
        """To tenants by their marks (the one with the older job first where they are level), to each tenant's routes
        in turn."""
        routes: dict[str, list[int]] = {}
        for bid in order:
            routes.setdefault(bid.tenant, []).append(bid.route)
        if slots <= 0 or not routes:
            return
        shares = self._by_tenant(list(routes), slots)
        for tenant, count in shares.items():
            self._evenly(routes[tenant], count)

    def _by_tenant(self, tenants: list[str], slots: int) -> dict[str, int]:
        if len(tenants) == 1:
            return {tenants[0]: slots}
        counts: dict[str, int] = {}
        heap = [(self._mark(tenant), place, tenant) for place, tenant in enumerate(tenants)]
        heapq.heapify(heap)
        for _ in range(slots):
            mark, place, tenant = heap[0]
            counts[tenant] = counts.get(tenant, 0) + 1
            self._marks[tenant] = mark + self._turns.step(tenant)
            heapq.heapreplace(heap, (self._marks[tenant], place, tenant))
        return counts

    def _mark(self, tenant: str) -> float:
        return self._marks.get(tenant, self._turns.mark(tenant))

    def _evenly(self, routes: Sequence[int], slots: int) -> None:
        """The remainder to the first."""
        each, rest = divmod(slots, len(routes))
        for place, route in enumerate(routes):
            self.granted[route] = self.granted.get(route, 0) + each + (place < rest)
