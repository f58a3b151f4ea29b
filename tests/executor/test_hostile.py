"""Handlers against the process they live in: each gets a clear end, and the next job finds everything in order."""

from __future__ import annotations

import os
import time

import pytest

from tests.executor.watch import Watch, is_gone
from unstuck.model.settlement import Raised, Returned
from unstuck.worker.processes import Finished

HANDLERS = "tests.executor.hard_cases:app"


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", ["close_descriptors", "close_descriptors_async", "reuse_descriptors"])
def test_a_handler_that_closes_our_descriptors_ends_its_process_and_nobody_waits(
    watch: Watch, name: str, alone: bool
) -> None:
    other, executor = watch.executor(), watch.executor(alone=alone)
    since = time.monotonic()
    ref = watch.feed(executor, name)

    died = watch.died(executor, within=5.0)

    assert time.monotonic() - since < 3.0
    assert died.running == (ref,)
    assert not died.expected
    assert not watch.first(Finished, ref=ref)
    assert watch.result(other, "add", 1, 2) == 3


def test_a_handler_that_leaves_by_the_back_door_in_its_finally_is_a_death_with_a_status(watch: Watch) -> None:
    executor = watch.executor()
    ref = watch.feed(executor, "exit_in_finally")

    died = watch.died(executor)

    assert (died.running, died.status, died.expected) == ((ref,), "exit 7", False)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("what", ["stdout", "no stdout", "closed stdout", "gc", "folder", "recursion"])
def test_what_a_handler_has_bent_is_straight_for_the_next_one(watch: Watch, what: str, alone: bool) -> None:
    executor = watch.executor(alone=alone)
    before = watch.run(executor, "surroundings")
    assert isinstance(before.outcome, Returned)
    assert watch.run(executor, "bend", what).outcome == Returned("null")
    watch.hear_for(0.2)

    after = watch.run(executor, "surroundings")

    assert after.outcome == before.outcome
    assert watch.output(after) == watch.output(before) == "heard\n"


def test_a_neighbour_can_print_though_somebody_has_closed_standard_output(watch: Watch) -> None:
    executor = watch.executor()
    neighbour = watch.begin(executor, "prints_for", 0.5)
    watch.run(executor, "bend", "closed stdout")

    finished = watch.finished(neighbour)

    assert finished.outcome == Returned('"printed"')
    assert watch.output(finished) == "heard\n"


def test_an_overflow_of_the_stack_is_an_error_like_any_other(watch: Watch, shared: int) -> None:
    outcome = watch.run(shared, "overflow", 20_000).outcome

    assert isinstance(outcome, Raised)
    assert outcome.error.type == "RecursionError"
    assert watch.result(shared, "add", 1, 2) == 3


def test_threads_that_never_end_do_not_keep_a_drained_process(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "endless_threads")
    watch.fleet.drain(executor, "recycled")

    assert watch.died(executor, within=3.0).status == "exit 0"


@pytest.mark.parametrize("end", ["kill", "drain", "exit"])
def test_a_daemon_that_keeps_our_descriptors_open_hides_no_death_and_does_not_survive(watch: Watch, end: str) -> None:
    executor = watch.executor()
    pid = watch.result(executor, "daemon_with_our_descriptors")
    assert os.readlink(f"/proc/{pid}/fd/1").startswith("pipe:")

    match end:
        case "kill":
            watch.fleet.kill(executor, "test")
        case "drain":
            watch.fleet.drain(executor, "test")
        case _:
            watch.feed(executor, "exit_hard", 3)
    watch.died(executor, within=3.0)

    assert is_gone(pid)
