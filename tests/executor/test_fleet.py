"""A fleet in trouble: nothing it meets may cost the supervisor, or leave an attempt without an end."""

from __future__ import annotations

import contextlib
import math
import os
import resource
from collections.abc import Iterator

import pytest

from tests.executor.watch import APP, Watch, is_gone
from unstuck.model.settlement import Raised, Returned
from unstuck.worker.fleet import Fleet
from unstuck.worker.processes import Finished, Recalled, Started


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    """As a process has it that has used them up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_fleet_closes_while_an_executor_waits_for_its_birth() -> None:
    fleet = Fleet(APP, incarnation=f"test-close-{os.getpid()}", slots=2)
    fleet.start()
    fleet.hear(0.0)
    zygote = fleet.pids()["zygote"]["pid"]
    for executor in (1, 2, 3):
        fleet.spawn(executor)

    fleet.close()

    assert is_gone(zygote)
    assert fleet.views() == []


def test_an_app_for_whose_process_there_are_no_descriptors_is_imported_later(mode: str) -> None:
    watch = Watch(mode)
    try:
        with no_descriptors():
            failed = watch.import_failed()
        assert "could not be started" in failed.error
        watch.imported()
        assert watch.result(watch.executor(), "add", 1, 2) == 3
    finally:
        watch.close()


def test_an_executor_that_cannot_be_watched_for_want_of_descriptors_works_and_dies_as_any_other(mode: str) -> None:
    watch = Watch(mode)
    try:
        watch.imported()
        watch.fleet.spawn(1)
        with no_descriptors():
            watch.hear_for(1.5)
        ref = watch.begin(1, "block", 60.0)
        watch.fleet.kill(1, "a test says so")
        assert watch.died(1).running == (ref,)
    finally:
        watch.close()


@pytest.mark.parametrize("name", ["unspeakable", "unspeakable_async"])
def test_a_failure_that_cannot_be_described_is_reported_all_the_same(watch: Watch, shared: int, name: str) -> None:
    outcome = watch.run(shared, name).outcome

    assert isinstance(outcome, Raised)
    assert outcome.error.type == "Unspeakable"
    assert outcome.error.message == "its failure could not be described (ValueError)"
    assert watch.result(shared, "add_async", 1, 2) == 3


def test_an_exception_whose_class_hides_its_name_is_reported_by_it(watch: Watch, shared: int) -> None:
    outcome = watch.run(shared, "nameless").outcome

    assert isinstance(outcome, Raised)
    assert (outcome.error.type, outcome.error.message) == ("NamelessError", "no reason")


@pytest.mark.parametrize("alone", [False, True])
def test_a_handler_that_cancels_every_task_costs_nobody_their_outcome(mode: str, alone: bool) -> None:
    """Also not those whose task it cancelled before its first step: their slots are free again, too."""
    watch = Watch(mode, slots=4)
    try:
        watch.imported()
        executor = watch.executor(alone=alone)
        for _ in range(3):
            jobs = [watch.job(name) for name in ("cancel_everybody", "noop_async", "noop_async", "noop_async")]
            watch.fleet.feed(executor, jobs)
            for job in jobs:
                watch.finished(job.ref)
        assert not watch.first(Recalled)
        assert isinstance(watch.run(executor, "add_async", 1, 2).outcome, Returned)
    finally:
        watch.close()


def test_a_handler_that_holds_the_interpreter_is_seen_to_run_though_nobody_says_so(watch: Watch) -> None:
    executor = watch.executor()
    ref = watch.feed(executor, "hold_the_interpreter")
    view = watch.wait(lambda: next((v for v in watch.fleet.views() if ref in v.running and v.pulse_age > 0.3), None))

    # It holds the interpreter before or after its word got out: a matter of luck.
    assert bool(watch.first(Started, ref=ref)) != (ref in view.unsaid)
    assert view.unsaid.get(ref, math.inf) > view.since
    watch.fleet.kill(executor, "enough")
    assert watch.died(executor).running == (ref,)


def test_a_result_that_the_supervisor_cannot_read_ends_its_executor_and_nobody_else(watch: Watch) -> None:
    other, executor = watch.executor(), watch.executor()
    ref = watch.feed(executor, "nested", 50_000)

    died = watch.died(executor)

    assert "it sent what no executor sends" in died.status
    assert died.running == (ref,)
    assert not watch.first(Finished, ref=ref)
    assert watch.result(other, "add", 1, 2) == 3


def test_an_executor_runs_as_many_jobs_at_once_as_it_was_given_slots(mode: str) -> None:
    watch = Watch(mode, slots=8)
    try:
        watch.imported()
        watch.fleet.spawn(1, slots=2)
        refs = [watch.feed(1, name, 60.0) for name in ("block", "sleep_async") for _ in range(4)]
        watch.wait(lambda: True if sum(isinstance(e, Started) for e in watch.events) == 4 else None)
        watch.hear_for(0.3)
        (view,) = watch.fleet.views()
        assert len(view.running) == 4  # two on threads, two on the loop
        assert len(view.unstarted) == len(refs) - 4
    finally:
        watch.close()
