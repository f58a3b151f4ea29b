"""Handlers against the process they live in: each gets a clear end, and the next job finds everything in order."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.executor.watch import Watch, is_gone
from tests.tiers import in_tiers
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Lost, Raised, Returned
from unstuck.worker.processes import Finished, LeftBehind

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
@pytest.mark.parametrize("what", ["stdout", "no stdout", "closed stdout", "gc", "folder", "recursion", "switches"])
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


def test_nobody_stays_without_the_interpreter_though_somebody_has_forbidden_to_ask_for_it(watch: Watch) -> None:
    executor = watch.executor()
    watch.begin(executor, "block", 60)
    usual = watch.result(executor, "surroundings")

    assert watch.run(executor, "bend", "no switches").outcome == Returned("null")
    watch.hear_for(0.2)

    assert watch.result(executor, "surroundings") == usual


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


@in_tiers("rounds", 20, 50)
def test_a_finalizer_that_blocks_never_does_so_on_a_thread_of_ours(watch: Watch, rounds: int) -> None:
    executor = watch.executor()
    for _ in range(rounds):
        watch.run(executor, "litters")
        jobs = [watch.job("noop") for _ in range(8)]
        watch.fleet.feed(executor, jobs)
        for job in jobs:
            assert watch.finished(job.ref, within=5.0).outcome == Returned("null")


def test_a_handler_cannot_shrink_what_the_supervisor_reads(watch: Watch, shared: int) -> None:
    assert watch.result(shared, "shrinks_pages") == 0


@pytest.mark.parametrize("alone", [False, True])
def test_a_process_without_descriptors_says_so(watch: Watch, alone: bool) -> None:
    executor = watch.executor(alone=alone)
    assert watch.result(executor, "uses_up_descriptors", 80) > 30

    told = watch.hear_one(LeftBehind, within=2.0, executor=executor)

    assert told.poison == "no file descriptor is left in it (limit 80)"
    outcome = watch.run(executor, "opens_a_file").outcome
    if alone:
        assert isinstance(outcome, Raised)
    else:
        assert isinstance(outcome, Lost)
        assert outcome.blame == "bystander"
        assert outcome.error.message.endswith(
            "; a job of its process has used them up, which one cannot be told: it runs again alone"
        )
    outcome_error = outcome.error
    assert (outcome_error.type, "Too many open files" in outcome_error.message) == ("OSError", True)


def test_a_loop_without_its_selector_is_said_once_and_functions_finish(
    watch: Watch, capfd: pytest.CaptureFixture[str]
) -> None:
    executor = watch.executor()
    neighbour = watch.begin(executor, "prints_for", 1.0)
    watch.run(executor, "closes_the_selector")

    told = watch.hear_one(LeftBehind, within=2.0, executor=executor)
    assert told.poison.startswith("its event loop cannot run any more: ")
    watch.fleet.drain(executor, told.poison)

    assert watch.finished(neighbour).outcome == Returned('"printed"')
    died = watch.died(executor, within=3.0)
    assert died.expected
    watch.hear_for(0.1)
    assert capfd.readouterr().err.count("Traceback") == 1


def test_coroutines_on_a_loop_without_its_selector_do_not_wait_for_ever(watch: Watch) -> None:
    executor = watch.executor()
    neighbour = watch.begin(executor, "sleep_async", 30)
    watch.run(executor, "closes_the_selector")

    assert watch.died(executor, within=3.0).running == (neighbour,)


def test_who_swallows_a_cancel_while_it_waits_is_asked_again_within_its_grace(
    watch: Watch, shared: int, tmp_path: Path
) -> None:
    path = tmp_path / "asked"
    ref = watch.begin(shared, "swallows_once", str(path), grace=2.0)
    asked_at = time.monotonic()
    watch.fleet.cancel(shared, ref, RequestKind.CANCEL, "enough")

    assert watch.finished(ref).outcome == Returned('"obeyed the second"')
    assert 0.9 < time.monotonic() - asked_at < 2.0
    assert path.read_text() == "asked\nasked\n"


@in_tiers("rounds", 1, 5)
def test_a_stopped_zygote_goes_on_within_seconds(mode: str, rounds: int) -> None:
    watch = Watch(mode, app=HANDLERS)
    try:
        for _ in range(rounds):
            executor = watch.executor()
            watch.run(executor, "stops_its_zygote")
            since = time.monotonic()
            other = watch.executor()
            assert time.monotonic() - since < 6.0
            assert watch.result(other, "add", 1, 2) == watch.result(executor, "add", 1, 2) == 3
    finally:
        watch.close()
