"""The view: everything a plan may depend on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats
from unstuck.worker.roster import Post
from unstuck.worker.selffence import Fence
from unstuck.worker.shutdown import Phase

#: So many pulses in a row do not fail to come by chance: something keeps the process, or its loop.
STALE_PULSES = 3


@dataclass(frozen=True, slots=True)
class WearLimits:
    """When an executor is worn out; above `memory_limit` it is killed, job or not."""

    max_jobs: int | None = None
    max_memory: int | None = None
    memory_limit: int | None = None

    def is_exceeded(self, memory: int) -> bool:
        return self.memory_limit is not None and memory >= self.memory_limit


@dataclass(frozen=True, slots=True)
class FleetView:
    posts: tuple[Post, ...]
    unseated: tuple[HeldAttempt, ...]
    times: Times
    seats: Seats
    limits: WearLimits
    fence: Fence
    phase: Phase = Phase.WORKING
    is_impatient: bool = False
    is_imported: bool = True
    mode: Literal["fork", "spawn"] = "fork"
    spawn_from: float = 0.0
    #: A zygote died a short while ago: suspects run one at a time.
    is_wary: bool = False
    #: When the last look was: what happened since then nobody saw.
    looked_at: float = math.inf

    def running(self) -> Iterator[tuple[Post, HeldAttempt]]:
        for post in self.posts:
            yield from [(post, h) for h in post.holdings.values() if h.stage is Stage.RUNNING]

    def is_silent(self, post: Post) -> bool:
        return post.pulse_age >= self.times.unresponsive

    def is_stalled(self, post: Post) -> bool:
        """Its event loop does not turn. A process for single jobs has none to speak of."""
        return not post.alone and post.loop_age >= self.times.unresponsive

    @property
    def stale(self) -> float:
        """From this age on a pulse is late; why it is, can be told from `unresponsive` on."""
        return STALE_PULSES * self.times.pulse

    def was_away(self, now: float) -> bool:
        """We were stopped or suspended ourselves: ages that are read right after it say nothing about others."""
        return now - self.looked_at >= self.times.unresponsive
