"""What the supervisor's main thread knows. Actions, fleet events and the mailbox write it, the plan reads it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import field

from unstuck.model.job import AttemptRef
from unstuck.model.settlement import NotStarted
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.records import dataclass
from unstuck.store.port import Report
from unstuck.telemetry import emit
from unstuck.worker.leaked_threads import LeakedThreads
from unstuck.worker.ledger import HeldAttempt, Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.placing import Seats
from unstuck.worker.processes import ExecutorView, Imported
from unstuck.worker.roster import Post, Recycled, Roster
from unstuck.worker.selffence import Fence
from unstuck.worker.shutdown import Phase
from unstuck.worker.start_failures import YOUNG, trial_after
from unstuck.worker.view import FleetView, WearLimits

_SPAWN_REST = 0.1
_LONGEST_SPAWN_REST = 10.0
#: So many of the processes that ended last are remembered, for people.
_RECYCLED = 10


@dataclass(slots=True)
class WorkerState:
    times: Times
    seats: Seats
    limits: WearLimits
    fence: Fence
    ledger: Ledger = field(default_factory=Ledger)
    roster: Roster = field(default_factory=Roster)
    pace: Pace = field(default_factory=Pace)
    leaked_threads: LeakedThreads = field(default_factory=LeakedThreads)
    #: Claimed, and no place yet.
    unseated: list[HeldAttempt] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    recycled: deque[Recycled] = field(default_factory=lambda: deque(maxlen=_RECYCLED))
    phase: Phase = Phase.WORKING
    draining_since: float | None = None
    is_fenced: bool = False
    #: What fails of the worker's own roles, by name; and whether that keeps it from finishing what it would claim.
    troubles: dict[str, Trouble] = field(default_factory=dict)
    cannot_settle: bool = False
    is_congested: bool = False
    imported: Imported | None = None
    import_error: str | None = None
    start_error: str | None = None
    failed_spawns: int = 0
    spawn_from: float = 0.0
    #: How long a new process has to live before it is fed, since one died young.
    trial: float = 0.0
    wary_until: float = 0.0
    looked_at: float = float("inf")
    #: When we had last been away, stopped or suspended, before a look.
    back_at: float = float("-inf")
    #: Once an executor was ready: from then on only trouble makes a worker unready.
    has_started: bool = False
    #: Whether it was said that processes are above max_memory from their start.
    has_said_heavy: bool = False

    def is_ready(self, now: float) -> bool:
        """Whether it takes jobs: what a service manager and a probe want to know."""
        is_well = self.import_error is None and self.start_error is None
        is_well = is_well and not (self.is_fenced or self.cannot_settle)
        return self.has_started and is_well and self.phase is Phase.WORKING and now < self.fence.cancel_at

    def view(self, now: float, *, is_impatient: bool) -> FleetView:
        return FleetView(
            posts=tuple(self.roster.posts.values()),
            unseated=tuple(self.unseated),
            times=self.times,
            seats=self.seats,
            limits=self.limits,
            fence=self.fence,
            phase=self.phase,
            is_impatient=is_impatient,
            is_imported=self.imported is not None,
            mode=self.imported.mode if self.imported is not None else "fork",
            spawn_from=self.spawn_from,
            is_wary=now < self.wary_until,
            looked_at=self.looked_at,
        )

    def look(self, views: Iterable[ExecutorView], now: float) -> None:
        self.roster.look(views, now)
        if now - self.looked_at >= self.times.unresponsive:
            self.back_at = now
        for post in self.roster.posts.values():
            # If the machine slept they did too, and have had no time for a pulse since.
            post.pulse_age = min(post.pulse_age, now - self.back_at)
            post.loop_age = min(post.loop_age, now - self.back_at)
        for post in self.roster.posts.values():
            self._weigh(post, now)
            if post.ready_at is not None and now >= post.ready_at + YOUNG:
                self.trust(post)
        self._forget_failures(now)

    def _weigh(self, post: Post, now: float) -> None:
        is_over = self.limits.is_exceeded(post.memory)
        post.over_since = (now if post.over_since is None else post.over_since) if is_over else None
        if post.is_weighed or post.state != "active" or now < (post.trial_until or 0.0):
            return
        post.is_weighed = True
        if not is_over:
            post.is_barred = False
            self.start_succeeded()
        limit = self.limits.max_memory
        if limit is not None and post.memory >= limit and post.is_untouched and not self.has_said_heavy:
            self.has_said_heavy = True
            emit("heavy_start", level=logging.WARNING, memory=post.memory, max_memory=limit, pid=post.pid)

    def began(self, post: Post, pid: int, now: float) -> None:
        """It says that it is ready. It has not succeeded before it was weighed, where memory is limited, nor before
        its trial is over."""
        self.has_started = True
        post.ready_at = now
        is_barred = self.limits.memory_limit is not None or self.trial > 0.0
        if not is_barred:
            self.start_succeeded()
        if post.state == "starting":
            post.state, post.pid, post.is_barred = "active", pid, is_barred
            post.trial_until = now + self.trial if self.trial > 0.0 else None
            # Not since it was wanted: an executor that takes long to start would be sent away as soon as it is there.
            post.idle_since = now + self.trial

    def finished_one(self, post: Post) -> None:
        post.has_finished = True
        self.trust(post)

    def trust(self, post: Post) -> None:
        """Only an executor that was on trial itself shows that those started now are well again."""
        if post.trial_until is not None:
            self.trial = 0.0

    def died_young(self, post: Post, status: str, now: float, *, is_a_jobs_doing: bool) -> None:
        """A job that was alone in it is taken for the culprit, and surely if its process was well before."""
        was_well = post.trial_until is not None and not post.is_barred
        if is_a_jobs_doing and was_well:
            return
        self.trial = trial_after(post, now, self.trial)
        if not is_a_jobs_doing:
            lived = now - (post.ready_at or now)
            self.start_failed(f"it died {lived:.1f} s after it was ready: {status}", now)

    def _forget_failures(self, now: float) -> None:
        """All that is needed is there and well, and nothing has to start: what failed to is history."""
        if self.start_error is None or now < self.spawn_from + YOUNG or not self.roster.posts:
            return
        if all(post.state == "active" and not (post.killed or post.is_barred) for post in self.roster.posts.values()):
            self.start_succeeded()

    def start_succeeded(self) -> None:
        self.failed_spawns, self.start_error = 0, None

    def start_failed(self, why: str, now: float) -> None:
        """It will not start next time either: later each time."""
        self.failed_spawns += 1
        self.start_error = why
        rest = min(_LONGEST_SPAWN_REST, _SPAWN_REST * 2.0 ** min(self.failed_spawns, 10))
        self.spawn_from = now + rest
        emit("executor_failed_to_start", level=logging.ERROR, status=why, again_in=rest)

    def post_of(self, holding: HeldAttempt) -> Post | None:
        return self.roster.posts.get(holding.executor or 0)

    def feedable(self) -> list[Post]:
        return [post for post in self.roster.posts.values() if post.is_feedable(self.times.unresponsive)]

    def unrunnable(self) -> frozenset[str]:
        """Coroutines, while no event loop turns; those that want a process to themselves bring their own."""
        shared = [post for post in self.feedable() if not post.alone]
        if self.imported is None or not shared or any(p.has_live_loop(self.times.unresponsive) for p in shared):
            return frozenset()
        solos = {w.name for w in self.imported.workflows if w.policy.isolation == "process"}
        return self.imported.coroutines - solos

    def give_back(self, ref: AttemptRef, reason: str) -> None:
        """It never started: it goes back uncharged."""
        self.unseated = [h for h in self.unseated if h.ref != ref]
        if self.ledger.end(ref):
            self.reports.append(Report(ref, NotStarted(reason)))

    def refuse(self, holdings: Iterable[HeldAttempt], why: str, now: float) -> None:
        for holding in holdings:
            self.roster.unseat(holding, now)
            self.give_back(holding.ref, why)
