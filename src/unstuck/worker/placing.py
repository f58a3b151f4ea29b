"""Claimed jobs -> executors. Pure: which job goes where; the supervisor feeds them."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Collection, Sequence

from unstuck.records import dataclass
from unstuck.worker.ledger import HeldAttempt
from unstuck.worker.roster import Post
from unstuck.worker.shares import FreeRoom

#: What may wait in executors beyond their slots: enough that they never run dry between two claims.
LEAST_AHEAD = 200
#: Suspects that run at once: a process each is what clears them, but a crash may leave hundreds.
MOST_SUSPECTS = 8


@dataclass(frozen=True, slots=True)
class Seats:
    """How much a worker can hold."""

    slots: int
    processes: int

    @property
    def ahead(self) -> int:
        return max(self.slots, LEAST_AHEAD)

    @property
    def solos(self) -> int:
        """Processes for jobs that want one each, beside the shared ones."""
        return self.processes

    @property
    def suspects(self) -> int:
        """Processes for suspects: each holds the slot it was claimed for, wherever it runs."""
        return min(self.slots, MOST_SUSPECTS)


def suspects_to_seat(posts: Collection[Post], *, is_wary: bool) -> int:
    """How many more jobs that must run by themselves may be seated. After a zygote's death one at a time: the next
    death then names its culprit, instead of charging all jobs that ran. A job whose process may still live counts."""
    if not is_wary:
        return sys.maxsize
    return 0 if any(h.job.alone for post in posts for h in post.holdings.values()) else 1


def place(
    waiting: Sequence[HeldAttempt],
    posts: Sequence[Post],
    most_suspects: int = sys.maxsize,
    *,
    coroutines: Collection[str] = (),
    unresponsive: float = math.inf,
) -> tuple[dict[int, list[HeldAttempt]], list[HeldAttempt]]:
    """Feedable posts in, seats and those left unseated out: the post with most free slots takes the next; a
    coroutine goes only where the loop lives."""
    shared = [post for post in posts if not post.alone]
    loops = {post.number for post in shared if post.has_live_loop(unresponsive)}
    solos = [post for post in posts if post.alone and post.load == 0]
    loads = {post.number: post.load - post.slots for post in shared}
    # While all loops live, who is free goes by a heap; else by a look at those that are open to it.
    heap = sorted((load, number) for number, load in loads.items()) if len(loops) == len(loads) else []
    seats: dict[int, list[HeldAttempt]] = {}
    unseated: list[HeldAttempt] = []
    for holding in waiting:
        if holding.needs_solitude:
            if solos and (most_suspects > 0 or not holding.job.alone):
                most_suspects -= holding.job.alone
                seats[solos.pop().number] = [holding]
            else:
                unseated.append(holding)
        elif heap:
            load, number = heap[0]
            heapq.heapreplace(heap, (load + 1, number))
            seats.setdefault(number, []).append(holding)
        elif open_to := loops if holding.job.workflow in coroutines else loads:
            number = min(open_to, key=loads.__getitem__)
            loads[number] += 1
            seats.setdefault(number, []).append(holding)
        else:
            unseated.append(holding)
    return seats, unseated


def room(
    posts: Collection[Post],
    unseated: Sequence[HeldAttempt],
    seats: Seats,
    *,
    may_fetch_ahead: bool,
    unresponsive: float = math.inf,
) -> FreeRoom:
    """What a claim may ask for."""
    shared = [post for post in posts if not post.alone and post.is_feedable(unresponsive)]
    if not shared:
        return FreeRoom(0)
    alone = [h for post in posts if post.alone for h in post.live]
    waiting = [*unseated, *alone]
    isolated = sum(holding.needs_solitude and not holding.is_suspect for holding in waiting)
    # Jobs that go on in an executor that drains keep their slots: its replacement has only the others.
    staying = sum(
        min(post.slots, len(post.live))
        for post in posts
        if post.state == "draining" and not (post.alone or post.killed)
    )
    free = sum(max(0, post.slots - post.load) for post in shared) - (len(waiting) - isolated) - staying
    over = sum(max(0, post.load - post.slots) for post in shared)
    ahead = max(0, seats.ahead - over) if may_fetch_ahead else 0
    return FreeRoom(max(0, free), ahead, max(0, seats.solos - isolated), in_order=seats.slots == 1)
