"""A fleet in trouble: nothing it meets may cost the supervisor, or leave an attempt without an end."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.executor.watch import APP, Watch, is_gone, stop
from tests.support.eventually import eventually
from unstuck.executor.descendants import processes
from unstuck.executor.messages import LeftBehindMessage as LeftBehindMessage
from unstuck.model.payload import clean_text
from unstuck.model.settlement import Raised, Returned, Stopped
from unstuck.worker import validate
from unstuck.worker.fleet import Fleet
from unstuck.worker.memory import resident
from unstuck.worker.processes import Finished, LeftBehind, Recalled, Started


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


def test_a_fleet_that_waits_for_its_end_shows_that_it_lives(mode: str) -> None:
    """Else the watchdog would end a worker that leaves on a busy machine, before it has written what ended."""
    watch = Watch(mode)
    watch.imported()
    zygote = watch.fleet.pids()["zygote"]["pid"]
    stop(zygote)

    stamps = [time.monotonic()]
    watch.fleet.close(lambda: stamps.append(time.monotonic()))

    assert is_gone(zygote)
    assert stamps[-1] - stamps[0] > 1.5, "it was given its time"
    assert max(later - before for before, later in pairwise(stamps)) < 1.5


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


@pytest.mark.parametrize("way", ["stopped", "holding the interpreter"])
def test_a_frozen_executor_is_gone_milliseconds_after_its_kill(watch: Watch, way: str) -> None:
    """KILL needs nobody's help."""
    executor = watch.executor()
    if way == "stopped":
        ref = watch.begin(executor, "block", 60.0)
        stop(watch.pid(executor))
    else:
        ref = watch.feed(executor, "hold_the_interpreter")
        watch.wait(lambda: True if any(v.pulse_age > 0.3 for v in watch.fleet.views()) else None)
    pid = watch.pid(executor)

    began = time.monotonic()
    watch.fleet.kill(executor, "frozen")
    died = watch.died(executor)

    assert time.monotonic() - began < 0.5
    assert died.running == (ref,)
    assert is_gone(pid)


def test_executors_without_end_leave_nothing_behind(mode: str) -> None:
    """Each is killed with a job in it, and leaves no descriptor, thread or zombie, here or in the zygote."""
    watch = Watch(mode, slots=2)
    try:
        watch.imported()
        zygote = watch.fleet.pids()["zygote"]["pid"]
        cycle(watch, 0)
        before = belongings(os.getpid()), belongings(zygote)

        # Each one that is spawned imports the app anew: a second of the test's time.
        for n in range(50 if mode == "fork" else 10):
            cycle(watch, n)

        assert watch.fleet.views() == []
        eventually(lambda: (belongings(os.getpid()), belongings(zygote)) == before)
    finally:
        watch.close()


def cycle(watch: Watch, n: int) -> None:
    """One executor's life: with threads, with what was withdrawn, with a dump, stopped or not; and its kill."""
    executor = watch.executor(alone=n % 3 == 2)
    ref = watch.begin(executor, "block", 60.0)
    watch.fleet.dump(executor, [ref])
    waiting = [watch.feed(executor, "add", 1, 2) for _ in range(2)]
    if n % 2:
        stop(watch.pid(executor))
    watch.fleet.recall(executor, waiting)
    watch.fleet.kill(executor, "the next one")
    watch.died(executor)


def belongings(pid: int) -> tuple[int, int, list[int]]:
    """Descriptors, threads and children of a process, dead ones included."""
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    threads = len(os.listdir(f"/proc/{pid}/task"))
    return descriptors, threads, [found.pid for found in processes() if found.parent == pid]


def test_what_a_job_leaves_behind_is_heard_bounded_and_clean() -> None:
    message = LeftBehindMessage("flow\x00", [f"thread-{n}\x00" + "x" * 1000 for n in range(1000)])

    event = validate.left_behind(7, message)

    assert (event.executor, event.workflow) == (7, clean_text("flow\x00", 100))
    assert len(event.threads) == validate.MAX_THREADS
    assert all(len(name) < 2 * validate.MAX_NAME and "\x00" not in name for name in event.threads)


def test_a_thread_that_outlives_its_job_is_heard_of(watch: Watch) -> None:
    executor = watch.executor()
    assert watch.result(executor, "stray_thread", 60) == "left a thread"

    left = watch.hear_one(LeftBehind, executor=executor)

    assert left.workflow == "stray_thread"
    assert len(left.threads) == 1


def test_an_import_tells_which_workflows_are_coroutines(watch: Watch) -> None:
    imported = watch.imported()

    assert {"add_async", "sleep_async"} <= imported.coroutines
    assert "add" not in imported.coroutines


def test_memory_is_seen_to_grow_within_half_a_second(watch: Watch, shared: int) -> None:
    before = next(view.memory for view in watch.fleet.views() if view.executor == shared)
    pid = watch.pid(shared)
    watch.feed(shared, "hog", 200, 60.0)
    # How soon a busy machine gives it so much is another matter.
    eventually(lambda: resident(pid) > before + (150 << 20), every=0.002)

    began = time.monotonic()
    watch.wait(
        lambda: True if any(v.memory > before + (150 << 20) for v in watch.fleet.views()) else None, every=0.05
    )

    assert time.monotonic() - began < 0.5


def test_a_terminated_executor_goes_on_and_what_it_had_started_is_told(watch: Watch) -> None:
    """Only those of its own session: nobody else's programs are touched."""
    executor, other = watch.executor(alone=True), watch.executor(alone=True)
    child, others = watch.result(executor, "child"), watch.result(other, "child")

    watch.fleet.terminate(executor)

    eventually(lambda: is_gone(child))
    assert not is_gone(others)
    assert watch.result(executor, "add", 1, 2) == 3


def test_one_that_is_interrupted_stops_and_its_neighbours_do_not(watch: Watch) -> None:
    """Through the fleet's own verb."""
    executor = watch.executor()
    neighbour = watch.begin(executor, "sleep_async", 1.0)
    culprit = watch.begin(executor, "block_loop", 60.0)

    watch.fleet.interrupt(executor, neighbour)
    watch.hear_for(0.2)
    assert not watch.first(Finished, ref=neighbour)
    watch.fleet.interrupt(executor, culprit)

    assert isinstance(watch.finished(culprit, within=2.0).outcome, Stopped)
    assert isinstance(watch.finished(neighbour).outcome, Returned)
