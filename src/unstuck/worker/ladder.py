"""One attempt's way from its request to its verdict. Pure.

Theory of operation. The time limit passes or a request comes -> it is durable (Ask) -> the handler is told (Tell; its
grace begins) -> at half of its grace what runs on a main thread is interrupted there (Interrupt) -> just before the
end of the grace its stack is taken (Dump) -> the verdict (Convict), while the body may still live.

The grace counts only while the job could obey. A job that another one keeps from running (a coroutine whose loop is
blocked; every job while one holds the interpreter) is excused for as long as that lasts (Excuse): its clock stands
still, also while it is too early to say which job is the cause. The cause need not be a job: it may be a callback or
a thread that an ended job left behind. If we cannot tell the cause, no job is convicted: the whole process is killed
and all jobs in it are suspects. A drain's request and a stop for a lost lease know no verdict and no excuse: no job
is at fault, and they cannot wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.lifecycle import RequestKind
from unstuck.worker.actions import (
    FROZEN,
    HANDED_BACK,
    LEASE_GOING,
    Action,
    Ask,
    Convict,
    Dump,
    Excuse,
    Interrupt,
    Kill,
    Tell,
)
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.roster import Post
from unstuck.worker.shutdown import Phase
from unstuck.worker.view import FleetView

#: After the first interrupt, or so much of a short grace; after each further one twice as long as before. A handler
#: that cleans up must have the time for it, and one that swallowed the first meets another before the verdict.
INTERRUPT_AGAIN = 2.0
SHARE_OF_THE_GRACE = 0.3
SHORTEST_BETWEEN = 0.05
#: So long before it is needed a stack is asked for: it comes within some milliseconds.
DUMP_AHEAD = 0.25
#: A process that shows no sign of life is looked at for so much longer before it is killed with nobody convicted.
DOUBT = 1.0
#: So often a process that is stopped is continued.
MOST_CONTINUED = 3


# --- asked to stop ----------------------------------------------------------------------------------------------
def stop_for_the_lease(view: FleetView, now: float) -> Iterator[Action]:
    if now >= view.fence.cancel_at:
        for _, holding in view.running():
            if holding.told_at is None:
                yield Tell(holding.ref, LEASE_GOING)


def enforce_time_limits(view: FleetView, now: float) -> Iterator[Action]:
    for _, holding in view.running():
        limit = holding.job.policy.timeout
        if limit == "unlimited" or holding.started_at is None or not _is_unasked(holding):
            continue
        if now >= holding.started_at + limit:
            yield Ask(holding.ref, RequestKind.TIMEOUT, f"it ran longer than {limit:g} seconds")


def hand_back(view: FleetView) -> Iterator[Action]:
    if view.phase is Phase.HANDING_BACK:
        for _, holding in view.running():
            if _is_unasked(holding):
                yield Ask(holding.ref, RequestKind.DRAIN, HANDED_BACK)


def _is_unasked(holding: HeldAttempt) -> bool:
    return holding.asked is None and holding.asking is None


# --- the grace --------------------------------------------------------------------------------------------------
def patience(view: FleetView, holding: HeldAttempt) -> float:
    return holding.patience(view.times, is_impatient=view.is_impatient)


def earns_verdict(holding: HeldAttempt) -> bool:
    is_told = holding.told_at is not None
    return is_told and holding.stage is Stage.RUNNING and holding.asked not in (None, RequestKind.DRAIN)


def is_over(view: FleetView, holding: HeldAttempt, now: float) -> bool:
    """Whether nobody waits for its body any more: convicted, or its patience used up where no verdict is due."""
    if holding.stage is Stage.STUCK:
        return True
    if earns_verdict(holding) or not holding.has_body or holding.told_at is None:
        return False
    return now >= holding.told_at + patience(view, holding)


def is_kept_by_another(view: FleetView, post: Post, holding: HeldAttempt) -> bool:
    """Another, be it something that an ended job left behind, is known to keep it from obeying."""
    if view.is_silent(post):
        return post.holder is not None and post.holder != holding.ref
    return view.is_stalled(post) and holding.ref in post.on_main and post.on_loop != holding.ref


def may_be_kept(view: FleetView, post: Post, holding: HeldAttempt) -> bool:
    """Pulses are late, and it cannot be told yet whose fault that is; it is not known to be this one's."""
    unresponsive = view.times.unresponsive
    if post.pulse_age >= view.stale:
        is_open = post.pulse_age < unresponsive and post.holder != holding.ref
        return is_open and (post.has_neighbours or post.has_leftovers)
    is_open = view.stale <= post.loop_age < unresponsive and not post.alone
    return is_open and holding.ref in post.on_main and post.on_loop != holding.ref


def may_be_continued(view: FleetView, post: Post) -> bool:
    """It was stopped, and more than one job suffers, begun or not. If it is stopped again and again, the verdict
    comes."""
    is_stopped = post.is_stopped and view.is_silent(post) and not post.killed
    return is_stopped and post.times_continued < MOST_CONTINUED and post.load > 1


def is_starved(view: FleetView, post: Post, holding: HeldAttempt) -> bool:
    """The machine has no core for its process, which nobody is known to keep silent; or none on which it could obey
    the interrupt that it was sent. Until the process counts as frozen."""
    if not post.is_starved or not (post.has_neighbours or post.has_leftovers):
        return False
    if may_be_interrupted(post, holding):
        is_meant = holding.interrupted_at is not None
    else:
        is_meant = view.is_silent(post) and post.holder is None
    return is_meant and max(post.pulse_age, post.loop_age if holding.ref in post.on_main else 0.0) < view.times.frozen


def is_excused(view: FleetView, post: Post, holding: HeldAttempt) -> bool:
    is_kept = is_kept_by_another(view, post, holding) or may_be_kept(view, post, holding)
    return is_kept or is_starved(view, post, holding) or may_be_continued(view, post)


def excuse_kept(view: FleetView, now: float) -> Iterator[Action]:
    for post, holding in view.running():
        if not earns_verdict(holding) or holding.told_at is None:
            continue
        if view.was_away(now):
            since = view.looked_at
        elif is_excused(view, post, holding):
            since = _kept_since(view, post, now)
        else:
            continue
        unseen = now - max(holding.told_at, since)
        if unseen > 0:
            yield Excuse(holding.ref, unseen)


def _kept_since(view: FleetView, post: Post, now: float) -> float:
    """The last look, which excused what was before it; the last pulse, if that was not late yet at the last look."""
    last_pulse = now - (post.pulse_age if post.pulse_age >= view.stale else post.loop_age)
    return last_pulse if view.looked_at < last_pulse + view.stale else view.looked_at


def interrupt_deaf(view: FleetView, now: float) -> Iterator[Action]:
    """At half of the grace, and then ever more rarely: a handler may have swallowed it, or may be cleaning up."""
    for post in view.posts:
        for holding in post.bodies:
            if holding.told_at is None or holding.stage is Stage.STUCK or not may_be_interrupted(post, holding):
                continue
            if now >= holding.told_at + patience(view, holding) / 2 and is_interruptible_again(view, holding, now):
                yield Interrupt(holding.ref)


def may_be_interrupted(post: Post, holding: HeldAttempt) -> bool:
    """Only what is on the main thread this instant: never an exception into a pooled thread."""
    return holding.ref in post.on_main and (post.alone or post.on_loop == holding.ref)


def is_interruptible_again(view: FleetView, holding: HeldAttempt, now: float) -> bool:
    if holding.interrupted_at is None:
        return True
    first = max(SHORTEST_BETWEEN, min(INTERRUPT_AGAIN, SHARE_OF_THE_GRACE * patience(view, holding)))
    return now >= holding.interrupted_at + first * 2.0 ** max(0, holding.interrupts - 1)


# --- the verdict ------------------------------------------------------------------------------------------------
def take_stacks(view: FleetView, now: float) -> Iterator[Action]:
    """Before the verdict, and before a process is killed for what one in it does."""
    for post in view.posts:
        due = [
            (holding, at) for holding in post.bodies if (at := _stack_due_at(view, post, holding, now)) is not None
        ]
        refs = {h.ref for h, at in due if now >= at and (h.dumped_at is None or h.dumped_at < at)}
        if refs and view.is_silent(post):
            # It may be killed at once for the attempt whose time has come: the others keep their stacks.
            refs |= {h.ref for h in post.bodies if h.dumped_at is None}
        if refs and not post.killed:
            yield Dump(post.number, tuple(h.ref for h in post.bodies if h.ref in refs))


def _stack_due_at(view: FleetView, post: Post, holding: HeldAttempt, now: float) -> float | None:
    frozen = view.times.frozen
    ahead = min(DUMP_AHEAD, frozen / 4)
    if is_over_memory(view, post):  # the kill waits for it, whatever else is due later
        return over_since(post, now)
    if earns_verdict(holding) and not is_excused(view, post, holding):
        return verdict_at(view, holding) - _ahead(view, holding)
    if view.is_silent(post) and post.has_neighbours:
        return now - post.pulse_age + frozen - ahead
    if view.is_stalled(post) and post.on_loop == holding.ref and others_on_loop(post):
        return now - post.loop_age + frozen - ahead
    return None


def others_on_loop(post: Post) -> list[HeldAttempt]:
    """Coroutines that could go on if the one on the loop let them."""
    return [h for h in post.bodies if h.stage is Stage.RUNNING and h.ref in post.on_main and h.ref != post.on_loop]


def is_over_memory(view: FleetView, post: Post) -> bool:
    return view.limits.is_exceeded(post.memory)


def over_since(post: Post, now: float) -> float:
    return now if post.over_since is None else post.over_since


def verdict_at(view: FleetView, holding: HeldAttempt) -> float:
    return (holding.told_at or 0.0) + patience(view, holding)


def _ahead(view: FleetView, holding: HeldAttempt) -> float:
    return min(DUMP_AHEAD, patience(view, holding) / 4)


def convict_unmoved(view: FleetView, now: float) -> Iterator[Action]:
    """With its stack asked for: if that could not happen in time, one look later."""
    for post, holding in view.running():
        if not earns_verdict(holding) or now < verdict_at(view, holding) or _is_dying(view, post, now):
            continue
        is_shown = holding.dumped_at is not None and holding.dumped_at >= verdict_at(view, holding) - _ahead(
            view, holding
        )
        if is_excused(view, post, holding) or view.was_away(now) or not is_shown:
            continue
        if view.is_silent(post) and post.holder is None and (post.has_neighbours or post.has_leftovers):
            if post.is_stopped or post.pulse_age >= view.times.unresponsive + DOUBT:
                yield Kill(post.number, FROZEN)
        else:
            yield Convict(holding.ref)


def _is_dying(view: FleetView, post: Post, now: float) -> bool:
    """It was killed and its end says the rest; a process that cannot even be killed is judged all the same."""
    return bool(post.killed) and now < post.killed_at + view.times.kill_grace
