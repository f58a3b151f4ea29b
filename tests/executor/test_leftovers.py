"""What attempts leave behind is told, once, with the right name on it; who leaves nothing is never told of."""

from __future__ import annotations

import pytest

from tests.executor.watch import Watch
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Returned
from unstuck.worker.processes import LeftBehind

HANDLERS = "tests.executor.hard_cases:app"


def left(watch: Watch, executor: int) -> list[LeftBehind]:
    return [event for event in watch.events if isinstance(event, LeftBehind) and event.executor == executor]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", ["leaves_a_thread", "leaves_a_thread_async"])
def test_a_thread_that_outlives_its_attempt_is_told_once(watch: Watch, name: str, alone: bool) -> None:
    executor = watch.executor(alone=alone)
    assert watch.run(executor, name, "stray-1", 60).outcome == Returned("null")

    watch.hear_one(LeftBehind, within=3.0, executor=executor)
    watch.run(executor, "add", 1, 2)
    watch.hear_for(1.0)

    assert left(watch, executor) == [LeftBehind(executor, name, ("stray-1",))]


def test_a_thread_that_a_thread_has_started_belongs_to_the_same_attempt(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "leaves_a_grandchild", "grandchild")

    assert watch.hear_one(LeftBehind, within=3.0, executor=executor).threads == ("grandchild",)


def test_a_task_that_swallows_its_cancel_is_told(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "leaves_a_deaf_task")

    found = watch.hear_one(LeftBehind, within=3.0, executor=executor)

    assert found.workflow == "leaves_a_deaf_task"
    assert found.threads == ("deaf (leaves_a_deaf_task.<locals>.deaf)",)


def test_work_that_goes_on_in_a_thread_after_its_coroutine_was_cancelled_is_told(watch: Watch) -> None:
    executor = watch.executor()
    ref = watch.begin(executor, "waits_for_a_thread")
    watch.hear_for(0.1)
    watch.fleet.cancel(executor, ref, RequestKind.CANCEL, "enough")
    watch.finished(ref, within=2.0)

    found = watch.hear_one(LeftBehind, within=3.0, executor=executor)

    assert found.workflow == "waits_for_a_thread"
    assert found.threads == ("asyncio.to_thread(sleep_inside_a_thread)",)


def test_work_that_nobody_waited_for_is_told_by_the_one_who_ordered_it(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "leaves_pool_work", 60)
    watch.run(executor, "runs_pool_work")

    watch.hear_one(LeftBehind, within=3.0, executor=executor)
    watch.hear_for(0.7)

    assert [event.workflow for event in left(watch, executor)] == ["leaves_pool_work"]


def test_what_ends_soon_after_is_not_left_behind(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "leaves_a_thread", "brief", 0.2)
    watch.run(executor, "leaves_pool_work", 0.2)
    watch.hear_for(1.0)

    assert left(watch, executor) == []


def test_threads_of_a_neighbour_of_our_crew_and_of_the_pool_are_nobodys_leftovers(watch: Watch) -> None:
    executor = watch.executor()
    neighbour = watch.begin(executor, "keeps_threads_while_it_runs", 1.2)
    refs = [watch.feed(executor, "block", 0.05) for _ in range(16)]
    refs += [watch.feed(executor, name) for name in ("runs_pool_work", "noop", "noop_async") for _ in range(8)]
    refs += [watch.feed(executor, "who_async")]
    for ref in [*refs, neighbour]:
        assert isinstance(watch.finished(ref).outcome, Returned)
    watch.hear_for(0.8)

    assert left(watch, executor) == []


def test_a_task_that_a_cancelled_task_has_started_is_told(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "leaves_a_task_that_is_reborn")

    assert "reborn" in watch.hear_one(LeftBehind, within=3.0, executor=executor).threads[0]


def test_a_task_factory_that_a_job_has_set_does_not_hide_what_the_next_leaves(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "sets_a_task_factory")
    watch.hear_for(0.5)  # beats
    watch.run(executor, "leaves_a_deaf_task")

    assert watch.hear_one(LeftBehind, within=3.0, executor=executor).workflow == "leaves_a_deaf_task"
