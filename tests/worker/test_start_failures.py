"""Which deaths count as failed starts, and who is fed before a new process has shown that it lives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.holdings import a_holding
from unstuck.model.settlement import Lost, NotStarted, Returned
from unstuck.model.times import Times
from unstuck.store.port import Report
from unstuck.worker import actions
from unstuck.worker.fleet_events import FleetEventHandler
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats
from unstuck.worker.plan import drain_idle_solos
from unstuck.worker.processes import ExecutorDied, ExecutorReady, ExecutorView, Finished
from unstuck.worker.roster import Post
from unstuck.worker.selffence import Fence
from unstuck.worker.state import WorkerState
from unstuck.worker.view import WearLimits

TIMES = Times()


class _FlowCalls:
    def keep_back(self, report: Report) -> bool:
        return False


class Scene:
    """The state of one worker, what it hears of its fleet, and its clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.state = WorkerState(TIMES, Seats(slots=4, processes=1), WearLimits(), Fence.after(1e9, TIMES))
        self.fleet_events = FleetEventHandler(self.state, None, None, _FlowCalls(), ())  # type: ignore[arg-type]

    def ready(self) -> Post:
        post = self.state.roster.open(False, self.now, 4)
        self.fleet_events.hear(ExecutorReady(post.number, 7), self.now)
        return post

    def seat(self, post: Post, stage: Stage = Stage.RUNNING, **facts: Any) -> HeldAttempt:
        holding = a_holding(stage, **facts)
        self.state.ledger._holdings[holding.ref] = holding
        self.state.roster.seat(post, [holding], self.now)
        holding.stage = stage
        return holding

    def die(self, post: Post, **facts: Any) -> list[Report]:
        running = tuple(h.ref for h in post.bodies)
        self.state.reports.clear()
        self.fleet_events.hear(
            ExecutorDied(post.number, 7, "exit 5", running=running, unstarted=(), **facts), self.now
        )
        return list(self.state.reports)

    def look(self, *posts: Post) -> None:
        views = [ExecutorView(p.number, 7, p.state, 0.0, 0.0, 0, 1, (), ()) for p in posts]
        self.state.look(views, self.now)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def blames(reports: list[Report]) -> list[str]:
    return [r.outcome.blame if isinstance(r.outcome, Lost) else type(r.outcome).__name__ for r in reports]


def test_an_empty_process_that_dies_young_is_a_failed_start_and_each_rest_is_longer(scene: Scene) -> None:
    rests = []
    for _ in range(4):
        post = scene.ready()
        waiting = scene.seat(post, Stage.FED)
        scene.now += 0.1
        (report,) = scene.die(post)
        assert (report.ref, isinstance(report.outcome, NotStarted)) == (waiting.ref, True)
        assert "0.1 s after it was ready: exit 5" in (scene.state.start_error or "")
        assert not scene.state.is_ready(scene.now)
        rests.append(scene.state.spawn_from - scene.now)
    assert rests == sorted(set(rests))


def test_the_next_one_is_fed_when_it_has_outlived_the_one_before_it(scene: Scene) -> None:
    post = scene.ready()
    assert scene.state.feedable() == [post], "the first has no reason to wait"
    scene.now += 1.0
    scene.die(post)

    again = scene.ready()
    scene.now += 1.9
    scene.look(again)
    assert (scene.state.feedable(), scene.state.is_ready(scene.now)) == ([], False)
    scene.now += 0.2
    scene.look(again)
    assert (scene.state.feedable(), scene.state.is_ready(scene.now)) == ([again], True)


def test_several_that_ran_in_it_are_suspects_and_bystanders_once_it_is_not_the_first(scene: Scene) -> None:
    """A12: whoever it was, they run again, each by itself."""
    for blame in ("suspect", "bystander", "bystander"):
        post = scene.ready()
        scene.now += 1.0
        scene.look(post)
        scene.seat(post), scene.seat(post)

        assert blames(scene.die(post)) == [blame, blame]
        assert scene.state.start_error is not None


def test_the_only_one_that_ran_in_it_did_it_and_no_start_has_failed(scene: Scene) -> None:
    """A12: but the next process is watched before it is fed, for it may have been the start."""
    post = scene.ready()
    scene.seat(post)
    scene.now += 0.1
    assert blames(scene.die(post)) == ["own"]
    assert (scene.state.start_error, scene.state.is_ready(scene.now)) == (None, True)

    again = scene.ready()
    scene.look(again)
    assert scene.state.feedable() == []
    scene.now += 0.6
    scene.look(again)
    trial = scene.state.trial
    scene.seat(again)
    assert blames(scene.die(again)) == ["own"]
    assert scene.state.trial == trial, "it was well: no doubt about its start"


#: why a death is no failed start -> what happened before it, and what is known of it
EXPLAINED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "it had lived long enough": ({"ready_at": 95.0}, {}),
    "it had finished a job": ({"has_finished": True}, {}),
    "we killed it": ({"killed": actions.FROZEN}, {}),
    "we terminated it": ({"terminated_at": 99.0}, {}),
    "it was drained": ({}, {"expected": True}),
    "all fell": ({}, {"with_others": True}),
}


@pytest.mark.parametrize("case", EXPLAINED)
def test_a_death_that_is_explained_is_no_failed_start(scene: Scene, case: str) -> None:
    before, facts = EXPLAINED[case]
    post = scene.ready()
    for name, value in before.items():
        setattr(post, name, value)

    scene.die(post, **facts)

    assert (scene.state.start_error, scene.state.trial, post.is_another) == (None, 0.0, False)


def test_a_known_culprit_is_charged_and_no_start_has_failed(scene: Scene) -> None:
    post = scene.ready()
    culprit, _ = scene.seat(post), scene.seat(post)
    assert blames(scene.die(post, culprit=culprit.ref)) == ["own", "neighbour"]
    assert (scene.state.start_error, scene.state.trial) == (None, 0.0)


@pytest.mark.parametrize("state", ["starting", "draining", "exited"])
def test_one_that_was_never_ready_is_a_failed_start_whatever_its_state_was_last(scene: Scene, state: Any) -> None:
    post = scene.state.roster.open(False, scene.now)
    post.state = state
    scene.die(post)
    assert scene.state.start_error == "exit 5"


def test_one_that_was_never_ready_because_we_wanted_it_no_more_is_none(scene: Scene) -> None:
    for facts, killed in (({"expected": True}, ""), ({}, actions.ORDERED)):
        post = scene.state.roster.open(False, scene.now)
        post.killed = killed
        scene.die(post, **facts)
    assert scene.state.start_error is None


@pytest.mark.parametrize("how", ["a job of it finished", "it grew old"])
def test_one_that_lasts_ends_the_trial_of_those_after_it(scene: Scene, how: str) -> None:
    old = scene.ready()
    scene.die(scene.ready())
    again = scene.ready()
    scene.now += 1.0
    scene.look(old, again)
    assert scene.state.trial > 0.0, "the older one tells nothing of the new"

    if how == "it grew old":
        scene.now += 5.0
        scene.look(again)
    else:
        scene.fleet_events.hear(Finished(again.number, scene.seat(again).ref, Returned("1"), 1), scene.now)

    assert scene.state.trial == 0.0


@pytest.mark.parametrize("trial", [0.0, 5.0])
def test_one_that_was_started_for_a_single_job_is_not_idle_before_it_could_have_one(
    scene: Scene, trial: float
) -> None:
    scene.state.trial = trial
    post = scene.state.roster.open(True, scene.now)
    scene.now += 30.0
    scene.fleet_events.hear(ExecutorReady(post.number, 7), scene.now)

    def is_sent_away() -> bool:
        return bool(list(drain_idle_solos(scene.state.view(scene.now, is_impatient=False), scene.now)))

    scene.now += trial + 1.9
    assert not is_sent_away()
    scene.now += 0.2
    assert is_sent_away()


def test_a_failure_that_nothing_depends_on_any_more_is_forgotten(scene: Scene) -> None:
    """A process for a single job died, and nobody needs another."""
    well = scene.ready()
    scene.look(well)
    scene.die(scene.ready())
    assert scene.state.start_error is not None
    scene.now += 4.0
    scene.look(well)
    assert not scene.state.is_ready(scene.now)

    scene.now += 2.0
    scene.look(well)
    assert (str(scene.state.start_error), scene.state.is_ready(scene.now)) == ("None", True)
