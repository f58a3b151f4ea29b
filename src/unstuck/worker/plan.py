"""plan(view, now): what the supervisor should do next, most urgent first. Pure.

`ladder.py` is about attempts, this is about processes: those with a body that will not end take no more jobs (Drain),
their neighbours finish, and they are killed once no job in them can still finish (Kill); those that showed no sign of
life, whose loop stands still, or that eat too much memory are killed for their neighbours' sake; those that are worn
out are replaced. Nothing here remembers: what was done is read off the holdings and posts, so an action that was lost
is planned again.
"""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.lifecycle import RequestKind
from unstuck.worker import ladder
from unstuck.worker.actions import (
    FROZEN,
    HANDED_BACK,
    LEASE_GOING,
    OVER_MEMORY,
    STALLED_LOOP,
    STUCK_INSIDE,
    Action,
    Continue,
    Drain,
    GiveBack,
    Interrupt,
    Kill,
    Promote,
    Recall,
    StartExecutor,
    Terminate,
)
from unstuck.worker.ladder import is_over
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import suspects_to_seat
from unstuck.worker.roster import Post
from unstuck.worker.shutdown import Phase
from unstuck.worker.view import FleetView

#: What has not started so long after it was fed goes back: another worker may have a slot.
UNSTARTED_LIMIT = 1.0
#: A job that needs a process to itself may wait longer for one: given back, it would only come again.
SOLITARY_LIMIT = 60.0
IDLE_SOLO_LIMIT = 2.0
#: Executors that may linger beside their replacements, for the jobs that are still in them.
MAX_DOOMED = 2


def plan(view: FleetView, now: float) -> Iterator[Action]:
    yield from fence_off(view, now)
    yield from leave(view)
    yield from ladder.stop_for_the_lease(view, now)
    yield from ladder.excuse_kept(view, now)
    yield from continue_stopped(view, now)
    yield from ladder.take_stacks(view, now)
    yield from ladder.convict_unmoved(view, now)
    yield from end_doomed(view, now)
    yield from kill_frozen(view, now)
    yield from break_stalls(view, now)
    yield from kill_over_memory(view, now)
    yield from ladder.interrupt_deaf(view, now)
    yield from ladder.enforce_time_limits(view, now)
    yield from ladder.hand_back(view)
    yield from recall_unstarted(view, now)
    yield from give_back_unseated(view, now)
    yield from drain_worn(view)
    yield from drain_idle_solos(view, now)
    yield from fill_places(view, now)


# --- processes that must go -------------------------------------------------------------------------------------
def fence_off(view: FleetView, now: float) -> Iterator[Action]:
    """The store was not reached for too long: kill, before another worker may start these jobs."""
    if now >= view.fence.kill_at:
        yield from (Kill(post.number, LEASE_GOING) for post in view.posts if not post.killed)


def leave(view: FleetView) -> Iterator[Action]:
    if view.phase is Phase.LEAVING:
        yield from (Kill(post.number, HANDED_BACK) for post in view.posts if not post.killed)


def end_doomed(view: FleetView, now: float) -> Iterator[Action]:
    """Executors with a body that will not end: no more jobs; killed once no job in them can still finish."""
    doomed = [post for post in view.posts if not post.killed and any(is_over(view, h, now) for h in post.bodies)]
    lingering = []
    for post in doomed:
        if post.alone and any(h.stage is Stage.STUCK for h in post.bodies):
            yield from _end_solo(view, post, now)
            continue
        if post.state != "draining":
            yield Drain(post.number, _why_doomed(post))
        if any(_may_still_finish(view, post, h, now) for h in post.bodies):
            lingering.append(post)
        else:
            yield Kill(post.number, _why_doomed(post))
    oldest = sorted(lingering, key=lambda post: post.since)
    yield from (Kill(post.number, _why_doomed(post)) for post in oldest[: max(0, len(oldest) - MAX_DOOMED)])


def _end_solo(view: FleetView, post: Post, now: float) -> Iterator[Action]:
    """Nobody else is in it: no drain, but a chance to clean up."""
    if post.terminated_at is None:
        yield Terminate(post.number, STUCK_INSIDE)
    elif now >= post.terminated_at + view.times.kill_grace:
        yield Kill(post.number, STUCK_INSIDE)


def _may_still_finish(view: FleetView, post: Post, holding: HeldAttempt, now: float) -> bool:
    """Not if the body that will not end keeps the interpreter or the loop from it."""
    if is_over(view, holding, now):
        return False
    if not ladder.is_kept_by_another(view, post, holding):
        return True
    keeper = post.holder if view.is_silent(post) else post.on_loop
    body = None if keeper is None else post.holdings.get(keeper)
    return body is None or not is_over(view, body, now)


def _why_doomed(post: Post) -> str:
    if any(h.stage is Stage.STUCK for h in post.bodies):
        return STUCK_INSIDE
    return HANDED_BACK if any(h.asked is RequestKind.DRAIN for h in post.bodies) else LEASE_GOING


def continue_stopped(view: FleetView, now: float) -> Iterator[Action]:
    """Nothing says which job stopped it, and to go on costs nothing: the culprit is judged by what it does then."""
    for post in view.posts:
        is_due = now >= post.continued_at + view.times.unresponsive and not view.was_away(now)
        if is_due and ladder.may_be_continued(view, post):
            yield Continue(post.number)


def kill_frozen(view: FleetView, now: float) -> Iterator[Action]:
    """For the neighbours' sake; a process with one job is left to that job's own time limit."""
    for post in view.posts:
        if post.killed or post.state not in ("active", "draining") or view.was_away(now):
            continue
        is_frozen = post.pulse_age >= view.times.frozen
        traps = any(_is_trapped(view, h, now) for h in post.holdings.values())
        if (is_frozen and len(post.bodies) != 1) or (traps and not is_frozen):
            yield Kill(post.number, FROZEN, post.holder if is_frozen else None)


def _is_trapped(view: FleetView, holding: HeldAttempt, now: float) -> bool:
    """Neither started nor given back, long after it was recalled."""
    is_recalled = holding.recalled and holding.stage is Stage.FED
    return is_recalled and _fed_for(holding, now) >= UNSTARTED_LIMIT + view.times.frozen


def break_stalls(view: FleetView, now: float) -> Iterator[Action]:
    """A loop that stands still with others on it: the job that blocks it is interrupted; if that does not help, its
    process is killed. A process that is silent as a whole is no matter of its loop."""
    for post in view.posts:
        is_stalled = view.is_stalled(post) and post.loop_age >= view.times.frozen and not view.is_silent(post)
        if not is_stalled or post.killed or view.was_away(now) or not ladder.others_on_loop(post):
            continue
        blocker = post.holdings.get(post.on_loop) if post.on_loop is not None else None
        if blocker is None:  # something left behind by a job that has ended
            if post.loop_age >= view.times.frozen + view.times.kill_grace:
                yield Kill(post.number, STALLED_LOOP)
        elif blocker.stalled_at is None or blocker.stalled_at < now - post.loop_age:
            yield Interrupt(blocker.ref, stalls=True)
        elif now >= blocker.stalled_at + view.times.kill_grace:
            yield Kill(post.number, STALLED_LOOP, blocker.ref)
        elif ladder.is_interruptible_again(view, blocker, now):
            yield Interrupt(blocker.ref)


def kill_over_memory(view: FleetView, now: float) -> Iterator[Action]:
    """One look after the stacks were asked for: what filled the memory is on one of them. Not much later in any
    case: the machine's memory is everybody's."""
    for post in view.posts:
        if not post.killed and ladder.is_over_memory(view, post):
            since = ladder.over_since(post, now)
            is_shown = all(h.dumped_at is not None and h.dumped_at >= since for h in post.bodies)
            if is_shown or now >= since + 2 * ladder.DUMP_AHEAD:
                yield Kill(post.number, OVER_MEMORY)


# --- jobs that have not started ---------------------------------------------------------------------------------
def recall_unstarted(view: FleetView, now: float) -> Iterator[Action]:
    at_once = view.phase > Phase.WORKING or now >= view.fence.cancel_at
    for post in view.posts:
        is_closed = at_once or post.state == "draining" or view.is_silent(post)
        refs = tuple(
            h.ref
            for h in post.holdings.values()
            if h.stage is Stage.FED and not h.recalled and (is_closed or _fed_for(h, now) >= UNSTARTED_LIMIT)
        )
        if refs:
            yield Recall(post.number, refs)


def give_back_unseated(view: FleetView, now: float) -> Iterator[Action]:
    for holding in view.unseated:
        limit = SOLITARY_LIMIT if holding.needs_solitude else UNSTARTED_LIMIT
        if view.phase > Phase.WORKING:
            yield GiveBack(holding.ref, HANDED_BACK)
        elif now >= view.fence.cancel_at:
            yield GiveBack(holding.ref, LEASE_GOING)
        elif now >= holding.claimed_at + limit:
            yield GiveBack(holding.ref, "no slot became free in time")


def _fed_for(holding: HeldAttempt, now: float) -> float:
    return 0.0 if holding.fed_at is None else now - holding.fed_at


# --- processes that are worn, idle or missing -------------------------------------------------------------------
def drain_worn(view: FleetView) -> Iterator[Action]:
    """A few at a time: each has its replacement at once, and the jobs in it go on."""
    draining = sum(post.state == "draining" and not post.killed for post in view.posts)
    worn = [post for post in view.posts if post.state == "active" and not post.killed and _worn(view, post)]
    for post in worn[: max(0, MAX_DOOMED - draining)]:
        yield Drain(post.number, _worn(view, post))


def _worn(view: FleetView, post: Post) -> str:
    limits = view.limits
    if limits.max_jobs is not None and post.jobs_done >= limits.max_jobs:
        return f"it has run {post.jobs_done} jobs"
    # An executor that is so large before its first job is not worn: the next one would be as large.
    if limits.max_memory is not None and post.memory >= limits.max_memory and not post.is_untouched:
        return f"it uses {post.memory >> 20} MiB"
    return post.left_behind


def drain_idle_solos(view: FleetView, now: float) -> Iterator[Action]:
    for post in view.posts:
        is_idle = post.alone and post.state == "active" and not post.killed and post.load == 0
        if is_idle and now >= post.idle_since + IDLE_SOLO_LIMIT:
            yield Drain(post.number, "nothing needs a process to itself")


def fill_places(view: FleetView, now: float) -> Iterator[Action]:
    """A draining executor is replaced at once: capacity is whole while its last jobs finish."""
    is_wanted = view.is_imported and view.phase is Phase.WORKING and now < view.fence.cancel_at
    if not is_wanted:
        return
    coming = [post for post in view.posts if post.state in ("starting", "active") and not post.killed]
    actions = [*_shared(view, coming), *_solos(view, coming)]
    for action in actions:
        if isinstance(action, Promote) or now >= view.spawn_from:
            yield action


def _shared(view: FleetView, coming: list[Post]) -> Iterator[Action]:
    shared = [post for post in coming if not (post.alone or post.is_spare)]
    spares = [post for post in coming if post.is_spare]
    slots = view.seats.slots - sum(post.slots for post in shared)
    for missing in range(view.seats.processes - len(shared), 0, -1):
        share = -(-slots // missing)
        slots -= share
        if fitting := [post for post in spares if post.slots == share]:
            spares.remove(fitting[0])
            yield Promote(fitting[0].number)
        else:
            yield StartExecutor(alone=False, slots=share)
    is_whole = len(shared) >= view.seats.processes and all(post.state == "active" for post in shared)
    if view.mode == "spawn" and is_whole and not spares:
        yield StartExecutor(alone=False, slots=-(-view.seats.slots // view.seats.processes), is_spare=True)


def _solos(view: FleetView, coming: list[Post]) -> Iterator[Action]:
    solos = [post for post in coming if post.alone]
    idle = sum(post.load == 0 for post in solos)
    suspects = sum(holding.job.alone for holding in view.unseated)
    isolated = sum(holding.needs_solitude for holding in view.unseated) - suspects
    needed = isolated + min(suspects, suspects_to_seat(view.posts, is_wary=view.is_wary)) - idle
    limit = view.seats.solos + view.seats.suspects
    yield from (StartExecutor(alone=True) for _ in range(min(needed, limit - len(solos))))
