"""What has not started comes back, whatever state its executor is in; and what came back never runs there."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.executor.watch import Watch, stop
from tests.tiers import in_tiers
from unstuck.model.job import AttemptRef
from unstuck.worker.processes import ExecutorDied, Finished, Recalled, Started

APP = "tests.executor.facts_app:app"


@pytest.fixture
def watch(mode: str) -> Iterator[Watch]:
    """Two slots: whatever else is fed waits."""
    watch = Watch(mode, APP, slots=2)
    watch.imported()
    yield watch
    watch.close()


def recalled(watch: Watch) -> list[AttemptRef]:
    return [ref for event in watch.events if isinstance(event, Recalled) for ref in event.refs]


def test_what_a_stopped_executor_has_not_begun_comes_back_and_never_runs(watch: Watch, tmp_path: Path) -> None:
    """Without its help, once it had the time to answer; after CONT it runs none of them."""
    executor = watch.executor()
    lasting = 2.0  # stopped before it is over, however busy the machine
    over = time.monotonic() + lasting
    first = [watch.begin(executor, "block", lasting) for _ in range(2)]
    waiting = [watch.feed(executor, "mark", str(tmp_path / "ran"), 0.0) for _ in range(50)]
    pid = watch.pid(executor)
    stop(pid)
    assert time.monotonic() < over
    unread = watch.feed(executor, "mark", str(tmp_path / "ran"), 0.0)

    began = time.monotonic()
    watch.fleet.recall(executor, [*waiting, unread])
    watch.wait(lambda: True if set(recalled(watch)) == {*waiting, unread} else None, within=20.0, every=0.05)

    assert time.monotonic() - began > 0.09
    (view,) = watch.fleet.views()
    assert view.unstarted == ()
    assert set(view.running) == set(first)
    # Its threads are free when it goes on: they look for work before it hears that there is none.
    watch.hear_for(max(0.0, over + 0.5 - time.monotonic()))
    os.kill(pid, signal.SIGCONT)
    for ref in first:
        watch.finished(ref)
    assert watch.result(executor, "add", 1, 2) == 3
    assert not (tmp_path / "ran").exists()
    assert sorted(recalled(watch), key=lambda ref: ref.job) == [*waiting, unread]


def test_what_waits_behind_one_that_holds_the_interpreter_comes_back(watch: Watch, tmp_path: Path) -> None:
    executor = watch.executor()
    culprit = watch.begin(executor, "native_call", str(tmp_path / "go"), 2.0)
    (tmp_path / "go").touch()
    watch.wait(lambda: True if watch.fleet.views()[0].pulse_age > 0.3 else None, every=0.05)
    marked = watch.feed(executor, "mark", str(tmp_path / "ran"), 0.0)
    waiting = [marked, watch.feed(executor, "add", 1, 2)]

    watch.fleet.recall(executor, waiting)
    watch.wait(lambda: True if set(recalled(watch)) == set(waiting) else None, within=0.5, every=0.05)

    watch.finished(culprit)
    assert watch.result(executor, "add", 1, 2) == 3
    assert not (tmp_path / "ran").exists()
    assert len(recalled(watch)) == 2


def test_a_death_does_not_name_again_what_has_come_back(watch: Watch) -> None:
    executor = watch.executor()
    running = [watch.begin(executor, "block", 60) for _ in range(2)]
    waiting = [watch.feed(executor, "add", 1, 2) for _ in range(3)]
    stop(watch.pid(executor))
    watch.fleet.recall(executor, waiting[:2])
    watch.wait(lambda: True if set(recalled(watch)) == set(waiting[:2]) else None, every=0.05)

    watch.fleet.kill(executor, "enough")
    died = watch.died(executor)

    assert set(died.running) == set(running)
    assert died.unstarted == (waiting[2],)


def test_the_cell_of_what_came_back_is_dealt_again_only_after_the_executor_has_answered(
    watch: Watch, tmp_path: Path
) -> None:
    executor, go_on = watch.executor(), tmp_path / "go on"
    member = watch.fleet._members[executor]
    running = [watch.begin(executor, "block_until", str(go_on)) for _ in range(2)]
    free = len(member.places)
    waiting = [watch.feed(executor, "add", 1, 2) for _ in range(3)]
    pid = watch.pid(executor)
    stop(pid)
    watch.fleet.recall(executor, waiting)
    watch.wait(lambda: True if set(recalled(watch)) == set(waiting) else None, every=0.05)
    assert len(member.places) == free - 3

    os.kill(pid, signal.SIGCONT)
    go_on.touch()

    for ref in running:
        watch.finished(ref)
    watch.wait(lambda: True if len(member.places) == free + 2 else None)
    assert member.fed == {}
    assert len(recalled(watch)) == 3


def test_what_came_back_can_be_fed_again_to_the_same_executor(watch: Watch, tmp_path: Path) -> None:
    """Under the name it had: the supervisor may still hold it."""
    executor, go_on = watch.executor(), tmp_path / "go on"
    running = [watch.begin(executor, "block_until", str(go_on)) for _ in range(2)]
    job = watch.job("add", 1, 2)
    watch.fleet.feed(executor, [job])
    pid = watch.pid(executor)
    stop(pid)
    watch.fleet.recall(executor, [job.ref])
    watch.wait(lambda: True if recalled(watch) else None, every=0.05)
    watch.fleet.feed(executor, [job])
    os.kill(pid, signal.SIGCONT)
    go_on.touch()

    watch.finished(job.ref)

    for ref in running:
        watch.finished(ref)
    assert len([e for e in watch.events if isinstance(e, Finished) and e.ref == job.ref]) == 1


def test_an_executor_that_only_owes_what_has_come_back_ends_when_drained(watch: Watch, tmp_path: Path) -> None:
    executor, go_on = watch.executor(), tmp_path / "go on"
    running = [watch.begin(executor, "block_until", str(go_on)) for _ in range(2)]
    waiting = watch.feed(executor, "add", 1, 2)
    pid = watch.pid(executor)
    stop(pid)
    watch.fleet.drain(executor, "recycled")
    watch.fleet.recall(executor, [waiting])
    watch.wait(lambda: True if recalled(watch) else None, every=0.05)
    os.kill(pid, signal.SIGCONT)
    go_on.touch()

    died = watch.died(executor)

    assert died.expected
    assert {watch.finished(ref).executor for ref in running} == {executor}


@pytest.mark.parametrize("alone", [False, True])
@in_tiers("rounds", 50, 150)
def test_each_attempt_either_starts_or_comes_back(watch: Watch, alone: bool, rounds: int) -> None:
    """The race: recalls against starts, with STOP and CONT at any moment. Never both, never neither."""
    chance = random.Random(20_240_617)
    executor = watch.executor(alone=alone)
    pid = watch.pid(executor)
    fed: list[AttemptRef] = []
    for _ in range(rounds):
        jobs = [watch.job(name) for name in ("noop", "noop_async", "noop", "noop_async", "noop", "noop")]
        refs = [job.ref for job in jobs]
        fed += refs
        watch.fleet.feed(executor, jobs)
        time.sleep(chance.uniform(0.0, 0.001))
        is_stopped = chance.uniform(0.0, 1.0) < 0.3
        if is_stopped:
            os.kill(pid, signal.SIGSTOP)
        watch.fleet.recall(executor, refs)
        watch.hear_for(chance.uniform(0.0, 0.002) if not is_stopped else 0.12)
        if is_stopped:
            os.kill(pid, signal.SIGCONT)

    def settled() -> bool | None:
        return True if len(answers(watch)) >= len(fed) else None

    watch.wait(settled)
    watch.hear_for(0.3)
    assert sorted(answers(watch), key=lambda ref: ref.job) == fed
    started = {e.ref for e in watch.events if isinstance(e, Started | Finished)}
    assert started.isdisjoint(recalled(watch))
    assert started
    assert set(recalled(watch))
    assert not watch.first(ExecutorDied)
    assert watch.fleet._members[executor].fed == {}


def answers(watch: Watch) -> list[AttemptRef]:
    return [e.ref for e in watch.events if isinstance(e, Finished)] + recalled(watch)


def test_one_that_was_caught_on_its_first_step_is_left_to_the_executor_to_answer_for(watch: Watch) -> None:
    """It is in its cell: stopped there, nobody but itself can say whether it has seen that it was withdrawn."""
    executor = watch.executor()
    member = watch.fleet._members[executor]
    pid = watch.pid(executor)
    stop(pid)
    ref = watch.feed(executor, "noop")
    watch.fleet.recall(executor, [ref])
    ((number, fed),) = member.fed.items()
    member.page.enter(fed.place, number, 1.0, 1)
    watch.hear_for(0.4)
    assert recalled(watch) == []
    (view,) = watch.fleet.views()
    assert view.running == (ref,)

    os.kill(pid, signal.SIGCONT)

    watch.wait(lambda: True if recalled(watch) == [ref] else None)
    assert watch.result(executor, "add", 1, 2) == 3


def test_one_that_has_begun_is_not_taken_back(watch: Watch) -> None:
    executor = watch.executor()
    ref = watch.feed(executor, "hold_the_interpreter")
    watch.wait(lambda: True if (v := watch.fleet.views()[0]).running == (ref,) and v.pulse_age > 0.3 else None)

    watch.fleet.recall(executor, [ref])
    watch.hear_for(0.4)

    assert recalled(watch) == []
    assert watch.fleet.views()[0].running == (ref,)
