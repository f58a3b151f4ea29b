"""Workers leave in order: what runs may finish, nothing is charged, nothing stays behind."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace

import psutil
import pytest

from tests.journeys.conftest import Jobs, Marks, both_modes, spawn_once
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from tests.tiers import at_a_distance, commit_on_sqlite
from unstuck.model.lifecycle import JobState

Start = Callable[..., Worker]


def leaves_nothing(worker: Worker, family: list[psutil.Process]) -> None:
    eventually(lambda: not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE])


@at_a_distance("sqlite", mode="fork")
@commit_on_sqlite
@both_modes
def test_term_lets_the_running_job_finish_and_claims_nothing_more(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A53: beats go on past the lease, the job completes, exit 0; jobs enqueued meanwhile stay QUEUED."""
    worker = start(times=replace(COMPRESSED, lease=5.0))
    job = jobs.enqueue("nap", marks.path, 7.0)
    marks.wait_for("begun")
    family = psutil.Process(worker.process.pid).children(recursive=True)
    worker.terminate()
    eventually(lambda: [w for w in jobs.store.workers() if w.state == "draining"])
    later = jobs.enqueue("add", 1, 1)

    assert worker.wait(20) == 0
    assert jobs.kinds(job) == ["submitted", "claimed", "completed"]
    assert jobs.state(later) is JobState.QUEUED
    leaves_nothing(worker, family)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@both_modes
def test_a_signal_to_every_process_of_a_worker_lets_its_job_finish(
    start: Start, jobs: Jobs, marks: Marks, number: signal.Signals
) -> None:
    """A53: as a service manager sends it."""
    worker = start()
    job = jobs.enqueue("nap", marks.path, 2.0)
    marks.wait_for("begun")
    family = psutil.Process(worker.process.pid).children(recursive=True)
    for process in (*family, worker.process):
        process.send_signal(number)

    assert worker.wait(20) == 0
    assert jobs.kinds(job) == ["submitted", "claimed", "completed"]
    leaves_nothing(worker, family)


@commit_on_sqlite
@spawn_once
def test_an_idle_worker_leaves_at_once(start: Start, jobs: Jobs) -> None:
    worker = start()
    jobs.until(jobs.enqueue("add", 1, 1), JobState.COMPLETED)
    asked_at = time.monotonic()
    worker.interrupt()
    assert worker.wait(10) == 0
    assert time.monotonic() - asked_at < 5
    assert [w for w in jobs.store.workers() if w.state == "active"] == []


@at_a_distance("postgres", mode="fork", policy="requeue", workflow="nap")
@pytest.mark.parametrize(
    ("policy", "state", "losses"),
    [("requeue", JobState.QUEUED, 0), ("pause", JobState.PAUSED, 0), ("expire", JobState.QUEUED, 1)],
)
@pytest.mark.parametrize("workflow", ["nap", "deaf"])
@spawn_once
def test_at_the_drain_limit_an_endless_job_is_handed_back_or_charged_a_loss(
    start: Start, jobs: Jobs, marks: Marks, policy: str, state: JobState, losses: int, workflow: str
) -> None:
    """A54"""
    worker = start(times=replace(COMPRESSED, drain=0.5))
    job = jobs.enqueue(workflow, marks.path, 60.0, on_drain_timeout=policy, grace=0.5)
    marks.wait_for("begun")
    worker.terminate()

    assert worker.wait(15) == 0
    record = jobs.get(job)
    assert (record.state, record.failures, record.losses, record.suspects) == (state, 0, losses, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
@both_modes
def test_a_second_signal_hands_everything_back_now(
    start: Start, jobs: Jobs, marks: Marks, number: signal.Signals, code: int
) -> None:
    """F08: no traceback, nothing lost."""
    worker = start()
    job = jobs.enqueue("deaf", marks.path, 60.0, grace=60)
    marks.wait_for("begun")
    worker.process.send_signal(number)
    eventually(lambda: "shutting_down" in worker.log.read_text())
    worker.process.send_signal(number)

    assert worker.wait(10) == code
    record = jobs.get(job)
    assert (record.state, record.losses) == (JobState.QUEUED, 0)
    assert "Traceback" not in worker.log.read_text()


@spawn_once
def test_jobs_that_had_not_started_go_back_uncharged_when_a_worker_drains(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    ids = jobs.enqueue_many("nap", marks.path, 2.0, times=6)
    worker = start(concurrency=2)
    marks.wait_for("begun", 2)
    worker.terminate()
    assert worker.wait(20) == 0
    states = [jobs.state(job) for job in ids]
    assert states.count(JobState.COMPLETED) == 2
    assert states.count(JobState.QUEUED) == 4
