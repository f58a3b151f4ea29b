"""plan(view, now): what the supervisor should do next, most urgent first. Pure.

Theory of operation. Every attempt that runs here is on a short ladder: its time limit passes or a request comes
-> the request is durable (Ask) -> the handler is told (Tell) -> its grace passes -> its verdict is written while its
body may still live (Convict) -> its executor takes no more jobs (Drain), its neighbours finish -> the executor is
killed once nobody healthy is left in it (Kill). A drain's request and a stop for a lost lease skip the verdict: they
are not the job's fault. Nothing here remembers: what was done is read off the holdings and posts, so an action that
was lost is planned again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.worker.ledger import Holding, Stage
from unstuck.worker.placing import Seats, suspects_to_seat
from unstuck.worker.roster import Post
from unstuck.worker.selffence import Fence
from unstuck.worker.shutdown import Phase

#: What has not started so long after it was fed goes back: another worker may have a slot.
UNSTARTED_LIMIT = 1.0
#: A job that needs a process to itself may wait longer for one: given back, it would only come again.
SOLITARY_LIMIT = 60.0
IDLE_SOLO_LIMIT = 2.0
#: Executors that may linger beside their replacements, for the jobs that are still in them.
MAX_DOOMED = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """When an executor is worn out."""

    max_jobs: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Everything a plan may depend on."""

    posts: tuple[Post, ...]
    standing: tuple[Holding, ...]
    times: Times
    seats: Seats
    limits: Limits
    fence: Fence
    phase: Phase = Phase.WORKING
    is_impatient: bool = False
    is_imported: bool = True
    spawn_from: float = 0.0
    #: A zygote died a short while ago: suspects run one at a time.
    is_wary: bool = False


@dataclass(frozen=True, slots=True)
class Kill:
    executor: int
    reason: str


@dataclass(frozen=True, slots=True)
class Drain:
    executor: int
    reason: str


@dataclass(frozen=True, slots=True)
class Convict:
    ref: AttemptRef


@dataclass(frozen=True, slots=True)
class Tell:
    """Stop the handler without a request of its own: the lease is going."""

    ref: AttemptRef
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Make a request durable; the handler is told once it is."""

    ref: AttemptRef
    kind: RequestKind
    reason: str


@dataclass(frozen=True, slots=True)
class Recall:
    executor: int
    refs: tuple[AttemptRef, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    ref: AttemptRef
    reason: str


@dataclass(frozen=True, slots=True)
class Spawn:
    alone: bool
    slots: int = 1


Action = Kill | Drain | Convict | Tell | Ask | Recall | GiveBack | Spawn

LEASE_GOING = "the lease could not be renewed"
STUCK_INSIDE = "a job in it ignored its request to stop"
HANDED_BACK = "the worker is shutting down"
FROZEN = "it showed no sign of life"


def plan(view: View, now: float) -> Iterator[Action]:
    yield from fence_off(view, now)
    yield from leave(view)
    yield from convict_unmoved(view, now)
    yield from end_doomed(view, now)
    yield from kill_frozen(view, now)
    yield from enforce_time_limits(view, now)
    yield from hand_back(view)
    yield from recall_unstarted(view, now)
    yield from give_back_standing(view, now)
    yield from drain_worn(view)
    yield from drain_idle_solos(view, now)
    yield from spawn_missing(view, now)


def fence_off(view: View, now: float) -> Iterator[Action]:
    """The store was not reached for too long: stop, then kill, before somebody else may start these jobs."""
    if now >= view.fence.kill_at:
        yield from (Kill(post.number, LEASE_GOING) for post in view.posts if not post.killed)
    elif now >= view.fence.cancel_at:
        for holding in _running(view):
            if holding.told_at is None:
                yield Tell(holding.ref, LEASE_GOING)


def leave(view: View) -> Iterator[Action]:
    if view.phase is Phase.LEAVING:
        yield from (Kill(post.number, HANDED_BACK) for post in view.posts if not post.killed)


def convict_unmoved(view: View, now: float) -> Iterator[Action]:
    for holding in _running(view):
        if _earns_verdict(holding) and is_over(view, holding, now):
            yield Convict(holding.ref)


def end_doomed(view: View, now: float) -> Iterator[Action]:
    """Executors with a body that will not end: no more jobs; killed once all others in them are done."""
    doomed = [post for post in view.posts if not post.killed and any(is_over(view, h, now) for h in post.bodies)]
    for post in doomed:
        if post.state != "draining":
            yield Drain(post.number, STUCK_INSIDE)
        if all(is_over(view, h, now) for h in post.bodies):
            yield Kill(post.number, _why_doomed(post))
    if len(doomed) > MAX_DOOMED:
        oldest = min(doomed, key=lambda post: post.since)
        yield Kill(oldest.number, _why_doomed(oldest))


def is_over(view: View, holding: Holding, now: float) -> bool:
    """Whether its patience is used up."""
    if holding.stage is Stage.STUCK:
        return True
    return holding.has_body and holding.told_at is not None and now >= holding.told_at + _patience(view, holding)


def _patience(view: View, holding: Holding) -> float:
    if holding.stage is Stage.REVOKED or holding.asked is None:
        return view.times.kill_grace
    if holding.asked is RequestKind.DRAIN and view.is_impatient:
        return view.times.kill_grace
    return holding.job.policy.grace


def _earns_verdict(holding: Holding) -> bool:
    return holding.stage is Stage.RUNNING and holding.asked not in (None, RequestKind.DRAIN)


def _why_doomed(post: Post) -> str:
    if any(h.stage is Stage.STUCK for h in post.bodies):
        return STUCK_INSIDE
    return HANDED_BACK if any(h.asked is RequestKind.DRAIN for h in post.bodies) else LEASE_GOING


def kill_frozen(view: View, now: float) -> Iterator[Action]:
    """For the neighbours' sake; a process with one job is left to that job's own time limit."""
    for post in view.posts:
        is_silent = post.state in ("active", "draining") and post.pulse_age >= view.times.frozen
        is_left_alone = post.load == len(post.bodies) == 1
        traps = any(
            h.recalled and h.stage is Stage.FED and _waits_too_long(view, h, now) for h in post.holdings.values()
        )
        if not post.killed and (traps or (is_silent and not is_left_alone)):
            yield Kill(post.number, FROZEN)


def _waits_too_long(view: View, holding: Holding, now: float) -> bool:
    """Neither started nor given back, long after it was recalled."""
    return _fed_for(holding, now) >= UNSTARTED_LIMIT + view.times.frozen


def enforce_time_limits(view: View, now: float) -> Iterator[Action]:
    for holding in _running(view):
        limit = holding.job.policy.timeout
        if limit == "unlimited" or holding.started_at is None or not _is_unasked(holding):
            continue
        if now >= holding.started_at + limit:
            yield Ask(holding.ref, RequestKind.TIMEOUT, f"it ran longer than {limit:g} seconds")


def hand_back(view: View) -> Iterator[Action]:
    if view.phase is Phase.HANDING_BACK:
        for holding in _running(view):
            if _is_unasked(holding):
                yield Ask(holding.ref, RequestKind.DRAIN, HANDED_BACK)


def recall_unstarted(view: View, now: float) -> Iterator[Action]:
    at_once = view.phase > Phase.WORKING or now >= view.fence.cancel_at
    for post in view.posts:
        refs = tuple(
            h.ref
            for h in post.holdings.values()
            if h.stage is Stage.FED
            and not h.recalled
            and (at_once or post.state == "draining" or _fed_for(h, now) >= UNSTARTED_LIMIT)
        )
        if refs:
            yield Recall(post.number, refs)


def give_back_standing(view: View, now: float) -> Iterator[Action]:
    for holding in view.standing:
        limit = SOLITARY_LIMIT if holding.needs_solitude else UNSTARTED_LIMIT
        if view.phase > Phase.WORKING:
            yield GiveBack(holding.ref, HANDED_BACK)
        elif now >= holding.claimed_at + limit:
            yield GiveBack(holding.ref, "no slot became free in time")


def drain_worn(view: View) -> Iterator[Action]:
    """A few at a time: each has its replacement at once, and the jobs in it go on."""
    draining = sum(post.state == "draining" and not post.killed for post in view.posts)
    worn = [post for post in view.posts if post.state == "active" and not post.killed and _worn(post, view.limits)]
    for post in worn[: max(0, MAX_DOOMED - draining)]:
        yield Drain(post.number, _worn(post, view.limits))


def _worn(post: Post, limits: Limits) -> str:
    if limits.max_jobs is not None and post.jobs_done >= limits.max_jobs:
        return f"it has run {post.jobs_done} jobs"
    if limits.max_memory is not None and post.memory >= limits.max_memory:
        return f"it uses {post.memory >> 20} MiB"
    return ""


def drain_idle_solos(view: View, now: float) -> Iterator[Action]:
    for post in view.posts:
        is_idle = post.alone and post.state == "active" and not post.killed and post.load == 0
        if is_idle and now >= post.idle_since + IDLE_SOLO_LIMIT:
            yield Drain(post.number, "nothing needs a process to itself")


def spawn_missing(view: View, now: float) -> Iterator[Action]:
    """A draining executor is replaced at once: capacity is whole while its last jobs finish."""
    is_wanted = view.is_imported and view.phase is Phase.WORKING and now < view.fence.cancel_at
    if not is_wanted or now < view.spawn_from:
        return
    coming = [post for post in view.posts if post.state in ("starting", "active") and not post.killed]
    shared = [post for post in coming if not post.alone]
    slots = view.seats.slots - sum(post.slots for post in shared)
    for missing in range(view.seats.processes - len(shared), 0, -1):
        share = -(-slots // missing)
        slots -= share
        yield Spawn(alone=False, slots=share)
    solos = [post for post in coming if post.alone]
    idle = sum(post.load == 0 for post in solos)
    suspects = sum(holding.job.alone for holding in view.standing)
    isolated = sum(holding.needs_solitude for holding in view.standing) - suspects
    needed = isolated + min(suspects, suspects_to_seat(view.posts, is_wary=view.is_wary)) - idle
    limit = view.seats.solos + view.seats.suspects
    yield from (Spawn(alone=True) for _ in range(min(needed, limit - len(solos))))


def _running(view: View) -> Iterator[Holding]:
    for post in view.posts:
        yield from [h for h in post.holdings.values() if h.stage is Stage.RUNNING]


def _fed_for(holding: Holding, now: float) -> float:
    return 0.0 if holding.fed_at is None else now - holding.fed_at


def _is_unasked(holding: Holding) -> bool:
    return holding.asked is None and holding.asking is None
