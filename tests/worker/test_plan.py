"""What a supervisor does next, decided without processes, database or waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.holdings import a_holding, a_post, a_view
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.worker import actions as plans
from unstuck.worker.actions import Ask, Convict, Drain, Dump, GiveBack, Kill, Recall, StartExecutor, Tell
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats
from unstuck.worker.plan import plan
from unstuck.worker.selffence import Fence
from unstuck.worker.shutdown import Phase
from unstuck.worker.view import WearLimits


def told(kind: RequestKind | None = RequestKind.CANCEL, *, at: float = 100.0, **policy: Any) -> HeldAttempt:
    holding = a_holding(at=0.0, **policy)
    holding.asked, holding.told_at = kind, at
    return holding


def test_nothing_to_do_is_an_empty_plan() -> None:
    assert list(plan(a_view(a_post(1, a_holding(at=0.0))), now=1.0)) == []


def test_the_time_limit_counts_from_the_start_of_the_handler() -> None:
    """A23"""
    holding = a_holding(at=50.0, timeout=60)
    view = a_view(a_post(1, holding))

    assert list(plan(view, now=109.9)) == []
    assert list(plan(view, now=110.0)) == [Ask(holding.ref, RequestKind.TIMEOUT, "it ran longer than 60 seconds")]


def test_an_unlimited_job_is_never_asked_to_stop_for_its_age() -> None:
    assert list(plan(a_view(a_post(1, a_holding(at=0.0, timeout="unlimited"))), now=1e8)) == []


def test_a_limit_that_is_being_asked_for_is_not_asked_for_again() -> None:
    holding = a_holding(at=0.0, timeout=1)
    holding.asking = RequestKind.TIMEOUT
    assert list(plan(a_view(a_post(1, holding)), now=5.0)) == []


def test_a_handler_that_ignores_its_request_is_convicted_when_its_grace_is_over() -> None:
    holding = told(at=100.0, grace=10)
    view = a_view(a_post(1, holding, a_holding(at=100.0)))

    assert list(plan(view, now=109.7)) == []
    assert list(plan(view, now=109.75)) == [Dump(1, (holding.ref,))]
    holding.dumped_at = 109.75
    assert list(plan(view, now=109.9)) == []
    assert list(plan(view, now=110.0)) == [Convict(holding.ref)]
    holding.stage = Stage.STUCK
    assert list(plan(view, now=110.0)) == [Drain(1, plans.STUCK_INSIDE)]


def test_a_healthy_neighbour_keeps_the_stuck_ones_process_alive_and_its_end_kills_it() -> None:
    stuck, neighbour = told(at=0.0), a_holding(at=100.0)
    stuck.stage = Stage.STUCK
    post = a_post(1, stuck, neighbour, state="draining")

    assert Kill not in map(type, plan(a_view(post), now=150.0))
    del post.holdings[neighbour.ref]
    assert Kill(1, plans.STUCK_INSIDE) in plan(a_view(post), now=150.0)


def test_a_drain_request_is_followed_by_a_kill_without_a_verdict() -> None:
    holding = told(RequestKind.DRAIN, at=100.0, grace=10)
    actions = list(plan(a_view(a_post(1, holding), phase=Phase.HANDING_BACK), now=110.0))

    assert Kill(1, plans.HANDED_BACK) in actions
    assert Convict not in map(type, actions)


def test_an_impatient_operator_shortens_the_grace_of_a_drain_to_the_kill_grace() -> None:
    holding = told(RequestKind.DRAIN, at=100.0, grace=3600)
    view = a_view(a_post(1, holding), phase=Phase.HANDING_BACK, is_impatient=True)

    assert Kill not in map(type, plan(view, now=104.9))
    assert Kill(1, plans.HANDED_BACK) in plan(view, now=105.0)


def test_a_revoked_attempt_alone_is_killed_after_the_kill_grace() -> None:
    holding = told(None, at=100.0)
    holding.stage = Stage.REVOKED
    view = a_view(a_post(1, holding))

    assert Kill not in map(type, plan(view, now=104.9))
    assert Kill(1, plans.LEASE_GOING) in plan(view, now=105.0)


def test_only_two_doomed_processes_may_linger_for_their_neighbours() -> None:
    posts = []
    for number in (1, 2, 3):
        stuck = a_holding(Stage.STUCK)
        posts.append(replace(a_post(number, stuck, a_holding(at=90.0), state="draining"), since=float(number)))

    assert [a for a in plan(a_view(*posts), now=100.0) if isinstance(a, Kill)] == [Kill(1, plans.STUCK_INSIDE)]


def test_handlers_are_told_and_then_killed_before_a_lease_that_cannot_be_renewed_ends() -> None:
    """A10: cancelled 17 s, killed 22 s after the last renewal."""
    holding = a_holding(at=0.0)
    view = a_view(a_post(1, holding), fence=Fence.after(0.0, Times()))

    assert list(plan(view, now=16.9)) == []
    assert list(plan(view, now=17.0)) == [Tell(holding.ref, plans.LEASE_GOING)]
    assert next(iter(plan(view, now=22.0))) == Kill(1, plans.LEASE_GOING)


def test_no_executor_is_started_while_the_lease_is_going() -> None:
    assert list(plan(a_view(fence=Fence.after(0.0, Times())), now=18.0)) == []


def test_what_has_not_started_within_a_second_is_recalled_once() -> None:
    unstarted = a_holding(Stage.FED, at=10.0)
    view = a_view(a_post(1, unstarted, a_holding(at=10.0)))

    assert list(plan(view, now=10.9)) == []
    assert list(plan(view, now=11.0)) == [Recall(1, (unstarted.ref,))]
    unstarted.recalled = True
    assert list(plan(view, now=11.1)) == []


def test_a_drain_recalls_what_has_not_started_and_lets_the_rest_finish() -> None:
    """A53"""
    unstarted, running, unseated = a_holding(Stage.FED, at=10.0), a_holding(at=10.0), a_holding(Stage.CLAIMED)
    view = a_view(a_post(1, unstarted, running), unseated=(unseated,), phase=Phase.DRAINING)

    assert list(plan(view, now=10.0)) == [
        Recall(1, (unstarted.ref,)),
        GiveBack(unseated.ref, plans.HANDED_BACK),
    ]


def test_what_has_not_started_goes_back_as_soon_as_the_lease_is_going() -> None:
    """Nobody else would start it until then."""
    unstarted, unseated = a_holding(Stage.FED, at=10.0), a_holding(Stage.CLAIMED, at=10.0)
    view = a_view(a_post(1, unstarted), unseated=(unseated,), fence=Fence(10.1, 15.0, 23.0))

    assert list(plan(view, now=10.0)) == []
    assert list(plan(view, now=10.1)) == [
        Recall(1, (unstarted.ref,)),
        GiveBack(unseated.ref, plans.LEASE_GOING),
    ]


def test_at_the_drain_limit_running_handlers_are_asked_to_stop() -> None:
    """A54"""
    holding = a_holding(at=10.0)
    view = a_view(a_post(1, holding), phase=Phase.HANDING_BACK)
    assert list(plan(view, now=11.0)) == [Ask(holding.ref, RequestKind.DRAIN, plans.HANDED_BACK)]


@pytest.mark.parametrize(
    ("facts", "limits"),
    [({"jobs_done": 100}, WearLimits(max_jobs=100)), ({"memory": 1 << 30}, WearLimits(max_memory=1 << 29))],
)
def test_a_worn_out_executor_is_drained_and_its_replacement_comes_at_once(
    facts: dict[str, Any], limits: WearLimits
) -> None:
    """A31"""
    post = a_post(1, a_holding(at=0.0), **facts)
    (drain,) = plan(a_view(post, limits=limits), now=1.0)
    assert isinstance(drain, Drain)
    post.state = "draining"
    assert list(plan(a_view(post, limits=limits), now=1.0)) == [StartExecutor(alone=False, slots=10)]


def test_executors_that_die_at_start_are_not_started_again_before_their_rest_is_over() -> None:
    assert list(plan(a_view(spawn_from=10.0), now=9.9)) == []
    assert list(plan(a_view(spawn_from=10.0), now=10.0)) == [StartExecutor(alone=False, slots=10)]


def test_nothing_is_started_before_the_app_is_imported_or_during_a_shutdown() -> None:
    assert list(plan(a_view(is_imported=False), now=1.0)) == []
    assert list(plan(a_view(phase=Phase.DRAINING), now=1.0)) == []


def test_a_suspect_gets_a_process_to_itself() -> None:
    suspect = a_holding(Stage.CLAIMED, at=0.0, alone=True)
    view = a_view(a_post(1), unseated=(suspect,))
    assert list(plan(view, now=0.1)) == [StartExecutor(alone=True)]
    assert list(plan(a_view(a_post(1), a_post(2, alone=True), unseated=(suspect,)), now=0.1)) == []


def test_a_process_for_single_jobs_goes_when_nothing_needs_it() -> None:
    view = a_view(a_post(1), a_post(2, alone=True, idle_since=10.0))
    assert list(plan(view, now=11.9)) == []
    assert [type(a) for a in plan(view, now=12.0)] == [Drain]


def test_a_frozen_process_is_killed_for_its_neighbours_sake_but_never_for_a_single_job() -> None:
    two = a_post(1, a_holding(at=0.0), a_holding(at=0.0), pulse_age=30.0)
    one = a_post(1, a_holding(at=0.0), pulse_age=30.0)

    assert Kill(1, plans.FROZEN) in plan(a_view(two), now=30.0)
    assert Kill not in map(type, plan(a_view(one), now=30.0))


def test_a_recall_that_is_never_answered_ends_the_executor() -> None:
    lost = a_holding(Stage.FED, at=0.0)
    lost.recalled = True
    view = a_view(a_post(1, lost, a_holding(at=0.0)))
    assert list(plan(view, now=30.9)) == []
    assert Kill(1, plans.FROZEN) in plan(view, now=31.0)


def test_the_third_signal_kills_everything_at_once() -> None:
    assert Kill(1, plans.HANDED_BACK) in plan(a_view(a_post(1, a_holding()), phase=Phase.LEAVING), now=1.0)


def test_worn_out_executors_are_replaced_a_few_at_a_time() -> None:
    """Each has a replacement at once: without a bound a worker would run many times its concurrency."""
    posts = [a_post(n, a_holding(at=0.0), jobs_done=5) for n in (1, 2, 3, 4)]
    view = a_view(*posts, limits=WearLimits(max_jobs=5), seats=Seats(40, processes=4))

    assert [a.executor for a in plan(view, now=1.0) if isinstance(a, Drain)] == [1, 2]
    posts[0].state = posts[1].state = "draining"
    assert Drain not in map(type, plan(view, now=1.0))
    rest = a_view(*posts[1:], limits=WearLimits(max_jobs=5), seats=Seats(40, processes=4))
    assert [a.executor for a in plan(rest, now=1.0) if isinstance(a, Drain)] == [3]


def test_a_third_doomed_process_is_killed_for_its_own_reason() -> None:
    """Its other jobs are innocent: what its death means for them depends on the reason."""
    posts = [a_post(n, told(None, at=18.0), a_holding(at=20.0), state="draining") for n in (1, 2, 3)]

    assert [a for a in plan(a_view(*posts), now=24.0) if isinstance(a, Kill)] == [Kill(1, plans.LEASE_GOING)]


def test_suspects_get_a_process_for_each_slot_they_hold_up_to_a_bound() -> None:
    suspects = tuple(a_holding(Stage.CLAIMED, at=0.0, alone=True) for _ in range(12))
    few = a_view(a_post(1), unseated=suspects[:3], seats=Seats(10, processes=1))
    many = a_view(a_post(1), unseated=suspects, seats=Seats(100, processes=1))

    assert list(plan(few, now=0.1)) == 3 * [StartExecutor(alone=True)]
    assert list(plan(many, now=0.1)) == 9 * [StartExecutor(alone=True)]


def test_what_waits_for_a_process_of_its_own_goes_back_rarely() -> None:
    suspect = a_holding(Stage.CLAIMED, at=0.0, alone=True)
    view = a_view(a_post(1), a_post(2, a_holding(), alone=True), unseated=(suspect,), seats=Seats(1, processes=1))

    assert GiveBack not in map(type, plan(view, now=59.9))
    assert GiveBack in map(type, plan(view, now=60.0))


def test_the_slots_are_shared_out_among_the_processes_to_the_last_one() -> None:
    """--concurrency 10 --processes 4"""
    seats = Seats(10, processes=4)
    assert list(plan(a_view(seats=seats), now=1.0)) == [StartExecutor(False, n) for n in (3, 3, 2, 2)]

    left = [a_post(1, slots=3), a_post(2, slots=3), a_post(3, slots=2)]
    assert list(plan(a_view(*left, seats=seats), now=1.0)) == [StartExecutor(False, 2)]


def test_no_processes_are_started_for_suspects_that_must_wait_their_turn() -> None:
    unseated = tuple(a_holding(Stage.CLAIMED, alone=True) for _ in range(4))
    busy = a_post(2, a_holding(alone=True), alone=True)
    shared = a_post(1, slots=10)

    def solos(*posts: Any, **facts: Any) -> int:
        actions = plan(a_view(*posts, unseated=unseated, **facts), now=1.0)
        return sum(isinstance(action, StartExecutor) and action.alone for action in actions)

    assert solos(shared) == 4
    assert solos(shared, is_wary=True) == 1
    assert solos(shared, busy, is_wary=True) == 0
