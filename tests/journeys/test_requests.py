"""Cancels, time limits and their grace, with real processes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.journeys.conftest import Jobs, Marks, both_modes, spawn_once
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import at_a_distance, commit_on_sqlite
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times

Start = Callable[..., Worker]


@at_a_distance("postgres", mode="fork", workflow="nap")
@pytest.mark.parametrize("workflow", ["nap", "nap_async"])
@both_modes
def test_a_cancel_reaches_a_cooperative_handler_within_two_seconds(
    start: Start, jobs: Jobs, marks: Marks, workflow: str
) -> None:
    """A17, with the default times."""
    worker = start(times=Times())
    job = jobs.enqueue(workflow, marks.path, 60.0)
    marks.wait_for("begun")

    asked_at = time.monotonic()
    jobs.store.cancel("default", job, "a person", "changed my mind")
    record = jobs.until(job, JobState.CANCELLED, within=5)

    assert time.monotonic() - asked_at < 2.5
    assert (record.worker, record.lease_until) == (None, None)
    assert marks.of("ended") == []
    told = f"cancellation_requested job={job} workflow={workflow} tenant=default attempt=1"
    assert f"{told} kind=cancel reason=changed my mind" in worker.log.read_text()
    if workflow == "nap_async":
        assert len(marks.of("Execution-cancelled:-changed-my-mind")) == 1


@commit_on_sqlite
@spawn_once
def test_an_interrupted_job_pauses_and_a_resumed_one_completes(start: Start, jobs: Jobs, marks: Marks) -> None:
    start()
    job = jobs.enqueue("nap", marks.path, 60.0, 0.1)
    marks.wait_for("begun")
    jobs.store.interrupt("default", job, "a person")
    record = jobs.until(job, JobState.PAUSED)
    assert record.error_message == "Job was interrupted by user"
    jobs.store.resume("default", job, "a person")
    assert jobs.until(job, JobState.COMPLETED).run == 2


@commit_on_sqlite
@spawn_once
def test_a_cancelled_job_whose_worker_is_killed_ends_cancelled(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A22"""
    first = start("first")
    job = jobs.enqueue("deaf", marks.path, 60.0, grace=30)
    marks.wait_for("begun")
    jobs.store.cancel("default", job, "a person")
    first.kill_all()
    start("second")
    jobs.until(job, JobState.CANCELLED, within=20)
    assert len(marks.of("begun")) == 1


@at_a_distance("sqlite", mode="fork")
@commit_on_sqlite
@both_modes
def test_a_handler_that_stops_inside_the_grace_after_its_limit_is_timed_out(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A23"""
    start()
    job = jobs.enqueue("nap", marks.path, 60.0, timeout=0.5)
    record = jobs.until(job, JobState.TIMEOUT)
    assert len(marks.of("begun")) == 1
    assert "requested" in jobs.kinds(job)
    assert record.failures == 0


@at_a_distance("postgres", mode="fork")
@commit_on_sqlite
@spawn_once
def test_a_handler_that_finishes_inside_the_grace_completes_late(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A24"""
    start()
    job = jobs.enqueue("deaf", marks.path, 1.0, timeout=0.4, grace=10)
    assert jobs.until(job, JobState.COMPLETED).late


@commit_on_sqlite
@spawn_once
def test_a_deaf_handler_is_convicted_its_neighbour_finishes_and_its_process_goes(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A25, A27, A28 as far as built: verdict and hold now, the process ends after its healthy neighbour."""
    start(concurrency=2)
    neighbour = jobs.enqueue("nap", marks.path, 5.0)
    marks.wait_for("begun", 1)
    stuck = jobs.enqueue("deaf", marks.path, 60.0, timeout=0.4)
    marks.wait_for("begun", 2)

    record = jobs.until(stuck, JobState.FAILED, within=6)
    assert record.error_type == "ExecutionStuck"
    assert record.error_message == (
        "Execution did not respond to cancellation within 0.5 seconds. Worker process recycled."
    )
    assert jobs.until(jobs.enqueue("add", 1, 1), JobState.COMPLETED, within=5)
    record = jobs.until(neighbour, JobState.COMPLETED)
    assert (record.losses, record.suspects) == (0, 0)
    eventually(lambda: not jobs.get(stuck).held, timeout=10)
    assert len(marks.of("begun")) == 2


@spawn_once
def test_a_cancelled_deaf_handler_alone_in_its_process_is_killed_at_the_end_of_its_grace(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    start(concurrency=1)
    job = jobs.enqueue("deaf", marks.path, 60.0)
    marks.wait_for("begun")
    jobs.store.cancel("default", job, "a person")
    assert jobs.until(job, JobState.FAILED, within=8).error_type == "ExecutionStuck"
    eventually(lambda: not jobs.get(job).held, timeout=10)
