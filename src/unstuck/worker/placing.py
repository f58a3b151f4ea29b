"""Claimed jobs -> executors. Pure: who sits where; the supervisor feeds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unstuck.worker.ledger import Holding
from unstuck.worker.roster import Post
from unstuck.worker.shares import Room

#: What may wait in executors beyond their slots: enough that they never run dry between two claims.
LEAST_AHEAD = 200


@dataclass(frozen=True, slots=True)
class Seats:
    """How much a worker can hold."""

    slots_each: int
    processes: int

    @property
    def slots(self) -> int:
        return self.slots_each * self.processes

    @property
    def ahead(self) -> int:
        return max(self.slots, LEAST_AHEAD)

    @property
    def solos(self) -> int:
        """Processes for a single job each, beside the shared ones."""
        return self.processes


def place(waiting: Sequence[Holding], posts: Sequence[Post]) -> tuple[dict[int, list[Holding]], list[Holding]]:
    """Feedable posts in, seats and those left standing out: the least loaded post takes the next job."""
    shared = [post for post in posts if not post.alone]
    solos = [post for post in posts if post.alone and post.load == 0]
    loads = {post.number: post.load for post in shared}
    seats: dict[int, list[Holding]] = {}
    standing: list[Holding] = []
    for holding in waiting:
        if holding.needs_solitude:
            if solos:
                seats[solos.pop().number] = [holding]
            else:
                standing.append(holding)
        elif loads:
            number = min(loads, key=loads.__getitem__)
            loads[number] += 1
            seats.setdefault(number, []).append(holding)
        else:
            standing.append(holding)
    return seats, standing


def room(posts: Sequence[Post], standing: Sequence[Holding], seats: Seats, *, may_fetch_ahead: bool) -> Room:
    """Feedable posts in, what a claim may ask for out."""
    shared = [post for post in posts if not post.alone]
    alone_standing = sum(holding.needs_solitude for holding in standing)
    free = sum(max(0, seats.slots_each - post.load) for post in shared) - (len(standing) - alone_standing)
    over = sum(max(0, post.load - seats.slots_each) for post in shared)
    ahead = max(0, seats.ahead - over) if may_fetch_ahead and shared else 0
    busy_solos = sum(post.alone and post.load > 0 for post in posts)
    solo = max(0, seats.solos - busy_solos - alone_standing) if shared else 0
    return Room(max(0, free), ahead, solo)
