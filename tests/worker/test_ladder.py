"""The ladder, rung by rung: what a job that does not stop meets, and what excuses it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.holdings import a_holding, a_post, a_view
from unstuck.model.lifecycle import RequestKind
from unstuck.worker import actions
from unstuck.worker.actions import (
    Action,
    Continue,
    Convict,
    Drain,
    Dump,
    Excuse,
    Interrupt,
    Kill,
    Promote,
    Recall,
    StartExecutor,
)
from unstuck.worker.ladder import DOUBT
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats
from unstuck.worker.plan import plan
from unstuck.worker.roster import Post
from unstuck.worker.view import WearLimits

SILENT = 1.0
STALLED = 1.0


def told(at: float = 100.0, kind: RequestKind | None = RequestKind.CANCEL, **policy: Any) -> HeldAttempt:
    """Asked to stop at that time, with a grace of 10 s, and its stack taken in time."""
    holding = a_holding(at=0.0, **policy)
    holding.asked, holding.told_at, holding.dumped_at = kind, at, at + 9.8
    return holding


def running() -> HeldAttempt:
    return a_holding(at=99.0)


def planned(post: Post, now: float, **facts: Any) -> list[Action]:
    return list(plan(a_view(post, **facts), now))


def only(kind: type[Action], found: list[Action]) -> list[Action]:
    return [action for action in found if isinstance(action, kind)]


# --- interrupts -------------------------------------------------------------------------------------------------
def on_the_loop(me: HeldAttempt, other: HeldAttempt) -> Post:
    return a_post(1, me, other, on_main=frozenset({me.ref, other.ref}), on_loop=me.ref)


def suspended(me: HeldAttempt, other: HeldAttempt) -> Post:
    return a_post(1, me, other, on_main=frozenset({me.ref, other.ref}))


def on_a_thread(me: HeldAttempt, other: HeldAttempt) -> Post:
    return a_post(1, me, other)


def solo(me: HeldAttempt, other: HeldAttempt) -> Post:
    return a_post(1, me, alone=True, on_main=frozenset({me.ref}))


@pytest.mark.parametrize(
    ("where", "is_reachable"), [(on_the_loop, True), (solo, True), (suspended, False), (on_a_thread, False)]
)
def test_at_half_of_its_grace_what_is_on_the_main_thread_is_interrupted_and_nothing_else(
    where: Any, is_reachable: bool
) -> None:
    me = told(at=100.0)
    post = where(me, running())

    assert only(Interrupt, planned(post, now=104.9)) == []
    assert only(Interrupt, planned(post, now=105.0)) == ([Interrupt(me.ref)] if is_reachable else [])


def test_an_interrupt_is_repeated_until_the_verdict() -> None:
    me = told(at=100.0)
    post = on_the_loop(me, running())
    me.interrupted_at, me.interrupts = 105.0, 1

    assert only(Interrupt, planned(post, now=106.9)) == []
    assert only(Interrupt, planned(post, now=107.0)) == [Interrupt(me.ref)]
    me.stage = Stage.STUCK
    assert only(Interrupt, planned(post, now=111.0)) == []


def interrupts_within(grace: float) -> list[float]:
    """How long after its request one that goes on regardless is interrupted, looked at 20 times a second."""
    me = told(at=100.0, grace=grace)
    post = on_the_loop(me, running())
    found = []
    for look in range(int(20 * grace)):
        now = 100.0 + look / 20
        if only(Interrupt, planned(post, now=now)):
            me.interrupted_at, me.interrupts = now, me.interrupts + 1
            found.append(now - 100.0)
    return found


def test_who_was_interrupted_has_time_to_clean_up_before_the_next_one() -> None:
    first, second = interrupts_within(6.0)
    assert first == 3.0
    assert second >= first + 1.5 + 0.2


def test_the_pause_between_two_interrupts_doubles() -> None:
    assert interrupts_within(60.0) == [30.0, 32.0, 36.0, 44.0]


def test_who_is_not_asked_to_stop_is_not_interrupted() -> None:
    me = running()
    assert only(Interrupt, planned(on_the_loop(me, running()), now=500.0)) == []


# --- stacks -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("grace", "ahead"), [(10.0, 0.25), (0.4, 0.1)])
def test_the_stack_is_asked_for_once_just_before_the_verdict(grace: float, ahead: float) -> None:
    me = told(at=100.0, grace=grace)
    me.dumped_at = None
    post = a_post(1, me, running())

    assert only(Dump, planned(post, now=100.0 + grace - ahead - 0.01)) == []
    assert only(Dump, planned(post, now=100.0 + grace - ahead + 0.01)) == [Dump(1, (me.ref,))]
    me.dumped_at = 100.0 + grace - ahead + 0.01
    assert only(Dump, planned(post, now=100.0 + grace)) == []


def test_no_verdict_comes_before_its_stack_was_asked_for() -> None:
    me = told(at=100.0)
    me.dumped_at = None
    post = a_post(1, me, running())

    assert planned(post, now=110.3) == [Dump(1, (me.ref,))]
    me.dumped_at = 110.3
    assert only(Convict, planned(post, now=110.35)) == [Convict(me.ref)]


def test_a_grace_that_was_prolonged_takes_a_new_stack() -> None:
    me = told(at=100.0)
    me.told_at = 105.0
    assert only(Dump, planned(a_post(1, me, running()), now=114.8)) == [Dump(1, (me.ref,))]


# --- the verdict and its excuses --------------------------------------------------------------------------------
def verdict(found: list[Action]) -> str:
    kinds = {type(action) for action in found}
    if Convict in kinds:
        return "convicted"
    if Excuse in kinds:
        return "excused"
    return next((f"killed: {a.reason}" for a in found if isinstance(a, Kill)), "nothing")


#: name -> (facts, verdict on `me` whose grace is over). `me` and `other` are the two bodies in the process.
CASES: dict[str, tuple[Any, str]] = {
    "on a thread": (lambda me, other: {}, "convicted"),
    "a coroutine that swallows its cancel": (lambda me, other: {"on_main": {me, other}}, "convicted"),
    "a coroutine that blocks its loop": (
        lambda me, other: {"on_main": {me, other}, "on_loop": me, "loop_age": STALLED},
        "convicted",
    ),
    "a coroutine whose loop another blocks": (
        lambda me, other: {"on_main": {me, other}, "on_loop": other, "loop_age": STALLED},
        "excused",
    ),
    "a coroutine whose loop something unknown blocks": (
        lambda me, other: {"on_main": {me, other}, "loop_age": STALLED},
        "excused",
    ),
    "on a thread beside a blocked loop": (
        lambda me, other: {"on_main": {other}, "on_loop": other, "loop_age": STALLED},
        "convicted",
    ),
    "another on the loop for a moment": (
        lambda me, other: {"on_main": {me, other}, "on_loop": other, "loop_age": 0.2},
        "convicted",
    ),
    "holds the interpreter": (lambda me, other: {"pulse_age": SILENT, "holder": me}, "convicted"),
    "another holds the interpreter": (lambda me, other: {"pulse_age": SILENT, "holder": other}, "excused"),
    "silent, and it may yet show why": (lambda me, other: {"pulse_age": SILENT}, "nothing"),
    "silent and nobody knows why": (lambda me, other: {"pulse_age": SILENT + DOUBT}, f"killed: {actions.FROZEN}"),
    "stopped, and to be continued": (lambda me, other: {"pulse_age": SILENT, "is_stopped": True}, "excused"),
    "stopped again and again": (
        lambda me, other: {"pulse_age": SILENT, "is_stopped": True, "continued": 3},
        f"killed: {actions.FROZEN}",
    ),
    "a coroutine on a blocked loop in a silent process, the holder known": (
        lambda me, other: {"pulse_age": 5.0, "loop_age": 5.0, "on_main": {me}, "on_loop": me, "holder": me},
        "convicted",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_who_can_be_blamed_when_the_grace_is_over(case: str) -> None:
    """A25, A29"""
    facts, expected = CASES[case]
    me, other = told(at=100.0), running()
    given = facts(me.ref, other.ref)
    given["on_main"] = frozenset(given.get("on_main", ()))
    post = a_post(1, me, other, **given)

    assert verdict(planned(post, now=110.0, looked_at=109.95)) == expected
    before = planned(post, now=109.9, looked_at=109.85)
    assert only(Convict, before) == only(Kill, before) == []


@pytest.mark.parametrize("facts", [{}, {"is_stopped": True}])
def test_the_only_body_in_a_silent_process_is_to_blame(facts: dict[str, Any]) -> None:
    me = told(at=100.0)
    found = planned(a_post(1, me, pulse_age=5.0, **facts), now=110.0, looked_at=109.95)
    assert only(Convict, found) == [Convict(me.ref)]


def test_the_clock_of_who_is_excused_stands_still() -> None:
    """Its grace counts only while it could obey: no more, no less."""
    me, other = told(at=100.0), running()
    post = a_post(1, me, other, on_main=frozenset({me.ref, other.ref}), on_loop=other.ref, loop_age=3.0)

    assert only(Excuse, planned(post, now=105.0, looked_at=104.5)) == [Excuse(me.ref, 0.5)]
    assert only(Excuse, planned(post, now=100.25, looked_at=99.75)) == [Excuse(me.ref, 0.25)]


@pytest.mark.parametrize("kind", [None, RequestKind.DRAIN])
def test_neither_a_drain_nor_a_lost_lease_knows_an_excuse_or_a_verdict(kind: RequestKind | None) -> None:
    me, other = told(at=100.0, kind=kind), running()
    post = a_post(1, me, other, on_main=frozenset({me.ref, other.ref}), on_loop=other.ref, loop_age=3.0)
    found = planned(post, now=110.0, looked_at=109.95)
    assert only(Excuse, found) == only(Convict, found) == []
    assert only(Drain, found) != []


def test_after_a_rest_of_our_own_nobody_is_judged_by_what_we_did_not_see() -> None:
    """The machine was suspended: nobody could obey, and every pulse is old."""
    me = told(at=100.0)
    post = a_post(1, me, running(), running(), pulse_age=60.0, loop_age=60.0)
    found = planned(post, now=160.0, looked_at=100.0)
    assert only(Excuse, found) == [Excuse(me.ref, 60.0)]
    assert only(Convict, found) == only(Kill, found) == []


def test_a_process_that_cannot_even_be_killed_is_judged_all_the_same() -> None:
    me = told(at=100.0)
    post = a_post(1, me, running(), killed=actions.FROZEN, killed_at=109.0)
    assert only(Convict, planned(post, now=113.9)) == []
    assert only(Convict, planned(post, now=114.0)) == [Convict(me.ref)]


# --- the end of a process with a stuck body ---------------------------------------------------------------------
def stuck() -> HeldAttempt:
    holding = told(at=100.0)
    holding.stage = Stage.STUCK
    return holding


def test_a_solo_is_terminated_and_then_killed_without_a_drain() -> None:
    post = a_post(1, stuck(), alone=True)

    assert planned(post, now=110.0)[0] == actions.Terminate(1, actions.STUCK_INSIDE)
    post.terminated_at, post.state = 110.0, "draining"
    assert only(Kill, planned(post, now=114.9)) == []
    assert only(Kill, planned(post, now=115.0)) == [Kill(1, actions.STUCK_INSIDE)]


@pytest.mark.parametrize(
    ("facts", "is_killed"),
    [
        (lambda me, other: {}, False),
        (lambda me, other: {"pulse_age": 2.0, "holder": me}, True),
        (lambda me, other: {"pulse_age": 2.0}, False),
        (lambda me, other: {"loop_age": 2.0, "on_loop": me, "on_main": frozenset({me, other})}, True),
        (lambda me, other: {"loop_age": 2.0, "on_loop": me, "on_main": frozenset({me})}, False),
    ],
    ids=["it can finish", "frozen by the stuck one", "frozen by whom?", "its loop is blocked", "on a thread"],
)
def test_a_process_lingers_only_for_those_that_can_still_finish(facts: Any, is_killed: bool) -> None:
    """A28"""
    me, other = stuck(), running()
    post = a_post(1, me, other, state="draining", **facts(me.ref, other.ref))
    assert bool(only(Kill, planned(post, now=111.0))) is is_killed


def test_at_most_two_of_many_doomed_processes_linger() -> None:
    posts = [a_post(n, stuck(), running(), state="draining", since=float(n)) for n in range(1, 6)]
    killed = {a.executor for a in plan(a_view(*posts), now=111.0) if isinstance(a, Kill)}
    assert killed == {1, 2, 3}


# --- for the neighbours' sake -----------------------------------------------------------------------------------
def test_a_frozen_process_is_killed_with_the_name_of_who_froze_it_and_its_stacks() -> None:
    me, other = running(), running()
    post = a_post(1, me, other, pulse_age=29.8, holder=me.ref)
    (dump,) = only(Dump, planned(post, now=129.8))
    assert dump == Dump(1, (me.ref, other.ref))
    assert only(Kill, planned(post, now=129.8)) == []
    post.pulse_age = 30.0
    assert Kill(1, actions.FROZEN, me.ref) in planned(post, now=130.0)


def a_stall(loop_age: float, **facts: Any) -> tuple[HeldAttempt, Post]:
    blocker, other = running(), running()
    on_main = frozenset({blocker.ref, other.ref})
    given = {"on_loop": blocker.ref, "on_main": on_main, "loop_age": loop_age, **facts}
    return blocker, a_post(1, blocker, other, **given)


def test_who_blocks_the_loop_of_others_for_too_long_is_interrupted_without_a_request() -> None:
    blocker, post = a_stall(loop_age=29.9)
    assert only(Interrupt, planned(post, now=130.0)) == []
    assert only(Dump, planned(post, now=130.0)) == [Dump(1, (blocker.ref,))]
    post.loop_age = 30.0
    assert only(Interrupt, planned(post, now=130.0)) == [Interrupt(blocker.ref, stalls=True)]


def test_and_if_that_does_not_help_its_process_is_killed() -> None:
    blocker, post = a_stall(loop_age=34.0)
    blocker.stalled_at = blocker.interrupted_at = 130.0
    assert only(Kill, planned(post, now=134.0)) == []
    assert only(Interrupt, planned(post, now=134.0)) == [Interrupt(blocker.ref)]
    post.loop_age = 35.0
    assert only(Kill, planned(post, now=135.0)) == [Kill(1, actions.STALLED_LOOP, blocker.ref)]


def test_a_stall_that_it_ended_does_not_count_for_the_next_one() -> None:
    blocker, post = a_stall(loop_age=30.0)
    blocker.stalled_at = blocker.interrupted_at = 130.0
    found = planned(post, now=300.0)
    assert only(Kill, found) == []
    assert only(Interrupt, found) == [Interrupt(blocker.ref, stalls=True)]


def test_a_coroutine_alone_on_its_loop_may_block_it_for_as_long_as_its_time_limit_allows() -> None:
    """A9"""
    blocker = a_holding(at=0.0)
    post = a_post(1, blocker, running(), on_loop=blocker.ref, on_main=frozenset({blocker.ref}), loop_age=500.0)
    assert planned(post, now=500.0) == []


def test_a_loop_that_nobody_here_blocks_ends_the_process() -> None:
    _, post = a_stall(loop_age=34.9, on_loop=None)
    assert only(Kill, planned(post, now=135.0)) == []
    post.loop_age = 35.0
    assert only(Kill, planned(post, now=135.0)) == [Kill(1, actions.STALLED_LOOP)]


def test_a_silent_process_is_no_matter_of_its_loop() -> None:
    _, post = a_stall(loop_age=29.0, pulse_age=29.0)
    post.loop_age = 30.0
    assert only(Interrupt, planned(post, now=130.0)) == []


def test_above_its_memory_limit_a_process_is_killed_once_its_stacks_were_asked_for() -> None:
    limits = WearLimits(memory_limit=1 << 30)
    me = running()
    post = a_post(1, me, memory=1 << 30, over_since=130.0)

    assert planned(post, now=130.0, limits=limits) == [Dump(1, (me.ref,))]
    me.dumped_at = 130.0
    assert only(Kill, planned(post, now=130.05, limits=limits)) == [Kill(1, actions.OVER_MEMORY)]
    assert only(Kill, planned(a_post(1, memory=1 << 30), now=130.0, limits=limits)) == [Kill(1, actions.OVER_MEMORY)]
    post.memory -= 1
    assert only(Kill, planned(post, now=130.05, limits=limits)) == []


# --- feeding, replacing -----------------------------------------------------------------------------------------
def test_an_unresponsive_process_gives_back_at_once_what_has_not_started() -> None:
    waiting = a_holding(Stage.FED, at=100.0)
    post = a_post(1, running(), waiting, pulse_age=0.9)
    assert only(Recall, planned(post, now=100.1)) == []
    post.pulse_age = 1.0
    assert only(Recall, planned(post, now=100.1)) == [Recall(1, (waiting.ref,))]


def test_what_a_job_left_behind_has_its_process_replaced() -> None:
    post = a_post(1, running(), left_behind="w left 1 running behind it: Thread-1")
    assert planned(post, now=100.0) == [Drain(1, "w left 1 running behind it: Thread-1")]


SEATS = Seats(slots=8, processes=2)


def test_where_processes_start_slowly_one_is_kept_warm_and_promoted_at_once() -> None:
    posts = [a_post(1), a_post(2)]
    spare = a_post(3, is_spare=True)

    def filled(*these: Post, **facts: Any) -> list[Action]:
        return list(plan(a_view(*these, seats=SEATS, **{"mode": "spawn", **facts}), now=1.0))

    assert filled(*posts) == [StartExecutor(alone=False, slots=4, is_spare=True)]
    assert filled(*posts, mode="fork") == []
    assert filled(*posts, spare) == []
    posts[0].state = "draining"
    assert filled(*posts, spare) == [Promote(3)]
    spare.is_spare = False
    assert filled(*posts, spare) == [StartExecutor(alone=False, slots=4, is_spare=True)]


def test_a_spare_comes_only_after_those_that_are_needed_and_only_where_it_fits() -> None:
    starting = a_post(1, state="starting")
    assert list(plan(a_view(starting, a_post(2), seats=SEATS, mode="spawn"), now=1.0)) == []
    misfit = a_post(3, is_spare=True, slots=3)
    view = a_view(a_post(2, slots=5), misfit, seats=Seats(7, processes=2), mode="spawn")
    assert list(plan(view, now=1.0)) == [StartExecutor(alone=False, slots=2)]


def test_a_spare_is_promoted_even_while_starts_are_held_back() -> None:
    view = a_view(a_post(2), a_post(3, is_spare=True), seats=SEATS, mode="spawn", spawn_from=10.0)
    assert list(plan(view, now=1.0)) == [Promote(3)]


# --- stopped processes ------------------------------------------------------------------------------------------
def stopped(*bodies: HeldAttempt, **facts: Any) -> Post:
    return a_post(1, *bodies, **{"is_stopped": True, "pulse_age": SILENT, **facts})


def test_a_stopped_process_with_several_jobs_is_continued() -> None:
    """Nothing says who stopped it, and nobody has to lose it for that."""
    assert only(Continue, planned(stopped(running(), running()), now=100.0)) == [Continue(1)]


@pytest.mark.parametrize(
    "facts",
    [{"pulse_age": 0.9}, {"killed": actions.ORDERED}, {"continued": 3}, {"continued": 1, "continued_at": 99.5}],
)
def test_it_is_not_continued_too_early_too_often_or_too_late(facts: dict[str, Any]) -> None:
    assert only(Continue, planned(stopped(running(), running(), **facts), now=100.0)) == []


def test_it_is_continued_again_once_nobody_is_left_who_was_there_each_time() -> None:
    """Jobs that stop it once each, one after the other, are not one that does it for ever."""
    first, second, long = running(), running(), running()
    post = stopped(first, second)
    for now in (97.0, 98.0, 99.0):
        post.note_continued(now)
    assert only(Continue, planned(post, now=101.0)) == []

    post.holdings = {h.ref: h for h in (second, long)}
    assert only(Continue, planned(post, now=101.0)) == [], "one of them was there each time"
    post.holdings = {h.ref: h for h in (long, running())}
    assert only(Continue, planned(post, now=101.0)) == [Continue(1)]
    post.note_continued(101.0)
    assert post.continued == 1


def test_a_job_that_stops_the_process_it_has_to_itself_is_left_to_its_own_limit() -> None:
    assert only(Continue, planned(stopped(running()), now=100.0)) == []


def test_a_stopped_process_is_continued_for_those_too_that_have_not_begun_in_it() -> None:
    """They cannot begin there, nor be given back; on a cold crew the one who stops it is often the first."""
    waits = a_holding(Stage.FED)
    assert only(Continue, planned(stopped(running(), waits), now=100.0)) == [Continue(1)]


def test_the_grace_stands_still_in_a_process_that_is_to_be_continued() -> None:
    me = told(at=88.0)
    post = stopped(me, running(), pulse_age=2.0, continued=1, continued_at=99.5)
    found = planned(post, now=100.0, looked_at=99.9)
    (excuse,) = only(Excuse, found)
    assert isinstance(excuse, Excuse)
    assert excuse.seconds == pytest.approx(0.1)
    assert only(Convict, found) == only(Kill, found) == []


def test_who_stops_its_process_again_and_again_is_waited_for_no_longer_than_its_grace() -> None:
    me = told(at=88.0)
    post = stopped(me, running(), pulse_age=20.0, continued=3, continued_at=90.0)
    assert only(Kill, planned(post, now=100.0)) == [Kill(1, actions.FROZEN)]


# --- the stacks of those that fall with another ---------------------------------------------------------------------
def test_before_a_verdict_in_a_silent_process_everybody_in_it_is_shown() -> None:
    """It may be killed at once, and whoever falls with it keeps where it was."""
    me, asked, other = told(at=100.0), told(at=100.0), running()
    me.dumped_at = asked.dumped_at = None
    post = a_post(1, me, asked, other, pulse_age=2.0, holder=me.ref)
    assert only(Dump, planned(post, now=109.8)) == [Dump(1, (me.ref, asked.ref, other.ref))]
    for holding in post.bodies:
        holding.dumped_at = 109.8
    assert only(Dump, planned(post, now=109.9)) == []
