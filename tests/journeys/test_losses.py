"""Workers and executors die; their jobs do not."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import psutil
import pytest

from tests.journeys.conftest import Jobs, Marks, both_modes, only_here, only_sqlite, spawn_once
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from tests.tiers import at_a_distance, commit
from unstuck.model.lifecycle import JobState, fold
from unstuck.model.times import Times
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.port import NewWorker, Share

Start = Callable[..., Worker]


@only_here
@commit
@both_modes
def test_job_survives_kill_9_of_its_worker_and_runs_again_within_ten_seconds(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A4, with the default times: a worker on the same host sees that the owner is gone."""
    ids = jobs.enqueue_many("nap", marks.path, 60.0, times=4)
    first = start("first", times=Times())
    marks.wait_for("begun", 4)
    start("second", times=Times())
    eventually(lambda: len(jobs.store.workers()) == 2)

    killed_at = time.clock_gettime(time.CLOCK_BOOTTIME)
    first.kill_all()
    again = marks.wait_for("begun", 8, within=10)

    assert max(at for _, at in again) - killed_at < 10
    for job in ids:
        (event,) = [e for e in jobs.store.history("default", job) if e.kind == "lost"]
        assert "first" in str(event.data)
        assert jobs.get(job).worker is not None


@at_a_distance("sqlite", mode="fork")
@commit
@spawn_once
def test_executors_do_not_outlive_a_killed_supervisor(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A32"""
    worker = start()
    jobs.enqueue("deaf", marks.path, 60.0)
    ((pid, _),) = marks.wait_for("begun")
    worker.kill()
    eventually(lambda: not psutil.pid_exists(pid), timeout=6)


@at_a_distance("postgres", mode="fork")
@spawn_once
def test_the_successor_of_a_killed_worker_recovers_its_jobs_before_it_claims(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A4"""
    job = jobs.enqueue("nap", marks.path, 1.0)
    first = start("first")
    marks.wait_for("begun")
    first.kill_all()
    start("second")
    record = jobs.until(job, JobState.COMPLETED, within=15)
    assert record.losses == 1
    assert jobs.kinds(job) == ["submitted", "claimed", "lost", "claimed", "completed"]


@at_a_distance("sqlite")
@commit
def test_expired_leases_are_recovered_before_the_first_claim(start: Start, jobs: Jobs) -> None:
    """A11: the lost worker was on another machine, so only its lease can tell."""
    lost = jobs.enqueue("add", 1, 1)
    far = jobs.store.register_worker(NewWorker("far", "far", "elsewhere", "b", "n", 1, 1, (), "v1", lease=2.0))
    (front,) = jobs.store.open_routes()
    assert jobs.store.claim(far.number, "c", [Share(front.route, 1)])
    eventually(lambda: jobs.store.now() > far.lease_until)
    other = jobs.enqueue("add", 1, 1)

    start(times=replace(COMPRESSED, sweep=3.0))
    for job in (lost, other):
        jobs.until(job, JobState.COMPLETED)
    recovered_at = next(e.at for e in jobs.store.history("default", lost) if e.kind == "lost")
    first_claim_at = next(e.at for e in jobs.store.history("default", other) if e.kind == "claimed")
    assert recovered_at <= first_claim_at
    assert jobs.get(lost).losses == 1


@at_a_distance("postgres", mode="fork", how="kill")
@pytest.mark.parametrize(
    ("mode", "how"),
    [("fork", "segfault"), ("fork", "exit"), ("fork", "kill"), ("spawn", "segfault"), ("spawn", "kill")],
)
def test_a_killer_job_leaves_running_at_once_and_ends_by_its_own_cap(
    start: Start, jobs: Jobs, marks: Marks, how: str
) -> None:
    """A12, F01–F03: it runs alone the second time, and is then charged for sure."""
    start()
    job = jobs.enqueue("dies", marks.path, how)
    record = jobs.until(job, JobState.FAILED, within=25)

    assert record.error_type == "ProcessDied"
    assert len(marks.of("begun")) == 2
    claimed, lost = jobs.store.history("default", job)[1:3]
    assert (claimed.kind, lost.kind) == ("claimed", "lost")
    assert (lost.at - claimed.at).total_seconds() < 5


@both_modes
def test_neighbours_of_a_killed_executor_run_again_at_no_cost(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A12: several jobs and no culprit known makes suspects, not losses; each reruns alone."""
    worker = start(concurrency=3)
    ids = jobs.enqueue_many("nap", marks.path, 3.0, times=3)
    pids = {pid for pid, _ in marks.wait_for("begun", 3)}
    (pid,) = pids
    os.kill(pid, signal.SIGKILL)

    for job in ids:
        record = jobs.until(job, JobState.COMPLETED, within=30)
        assert (record.losses, record.failures, record.suspects) == (0, 0, 1)
    assert worker.process.poll() is None


@commit
@spawn_once
def test_a_crash_with_a_known_culprit_charges_the_culprit_alone(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A29: the crashing thread is known, so its neighbour is no suspect."""
    start(concurrency=2)
    innocent = jobs.enqueue("nap", marks.path, 3.0)
    marks.wait_for("begun")
    culprit = jobs.enqueue("dies", marks.path, "segfault")

    assert jobs.until(culprit, JobState.FAILED, within=25).error_type == "ProcessDied"
    record = jobs.until(innocent, JobState.COMPLETED, within=25)
    assert (record.losses, record.suspects) == (0, 0)


@at_a_distance("sqlite")
def test_a_job_four_leases_long_is_never_recovered(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A3"""
    times = replace(COMPRESSED, lease=3.0, beat=0.4, margin=1.1, store_call=0.35, slack=0.4, drain=5.0)
    start("one", times=times)
    start("two", times=times)
    job = jobs.enqueue("nap", marks.path, 12.0)
    marks.wait_for("begun")

    def ended() -> bool:
        record = jobs.get(job)
        if record.state is JobState.RUNNING:
            assert record.lease_until is not None
            assert record.lease_until > jobs.store.now()
        return record.state is not JobState.RUNNING

    eventually(ended, timeout=25, every=0.1)
    assert jobs.kinds(job) == ["submitted", "claimed", "completed"]


@spawn_once
def test_a_stopped_executor_is_continued(start: Start, jobs: Jobs, marks: Marks) -> None:
    """F04: whoever stopped it, nobody in it loses anything."""
    start(concurrency=2)
    ids = jobs.enqueue_many("nap", marks.path, 4.0, times=2)
    pid = marks.wait_for("begun", 2)[0][0]
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: psutil.Process(pid).status() != psutil.STATUS_STOPPED)
    for job in ids:
        record = jobs.until(job, JobState.COMPLETED, within=30)
        assert (record.token, record.losses, record.suspects) == (1, 0, 0)


@at_a_distance("postgres", on_lost="fail")
@pytest.mark.parametrize(
    ("on_lost", "state", "error"), [("fail", JobState.FAILED, "WorkerLost"), ("pause", JobState.PAUSED, None)]
)
def test_a_job_that_must_not_run_twice_fails_or_pauses_when_its_worker_is_killed(
    start: Start, jobs: Jobs, marks: Marks, on_lost: str, state: JobState, error: str | None
) -> None:
    """A6"""
    first = start("first")
    job = jobs.enqueue("nap", marks.path, 60.0, on_lost=on_lost)
    marks.wait_for("begun")
    first.kill_all()
    start("second")

    record = jobs.until(job, state, within=15)
    if error:
        assert record.error_type == error
    # The second worker is at work and has left it alone.
    jobs.until(jobs.enqueue("add", 1, 1), JobState.COMPLETED)
    assert (jobs.state(job), len(marks.of("begun"))) == (state, 1)


@commit
@spawn_once
def test_a_job_that_must_not_run_twice_fails_when_its_executor_is_killed(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A6, A12: its worker lives and says so at once."""
    start()
    job = jobs.enqueue("nap", marks.path, 60.0, on_lost="fail")
    ((pid, _),) = marks.wait_for("begun")
    os.kill(pid, signal.SIGKILL)
    record = jobs.until(job, JobState.FAILED, within=5)
    assert record.error_type == "ProcessDied"
    jobs.until(jobs.enqueue("add", 1, 1), JobState.COMPLETED)
    assert len(marks.of("begun")) == 1


@at_a_distance("sqlite")
def test_a_job_lost_more_often_than_its_budget_fails(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A5: losses have a budget of their own; no failure is counted."""
    job = jobs.enqueue("nap", marks.path, 60.0, max_lost=1, retries=0)
    for place, name in enumerate(["first", "second"], 1):
        worker = start(name)
        marks.wait_for("begun", place)
        worker.kill_all()
    start("third")

    record = jobs.until(job, JobState.FAILED, within=15)
    assert (record.error_type, record.losses, record.failures) == ("WorkerLost", 2, 0)
    assert jobs.kinds(job) == ["submitted", "claimed", "lost", "claimed", "failed"]
    assert len(marks.of("begun")) == 2


@only_here
@only_sqlite
@both_modes
def test_two_workers_share_one_file_and_one_is_killed(start: Start, jobs: Jobs, marks: Marks, store_url: str) -> None:
    """A4, A13 on SQLite: a writer that dies in the middle leaves a sound file, and its work to the other."""
    first = start("first", concurrency=4, processes=2)
    start("second", concurrency=4, processes=2)
    ids = jobs.enqueue_many("blink", marks.path, 0.02, times=400)
    marks.wait_for("ended", 100, within=30)
    first.kill_all()

    eventually(lambda: jobs.store.counts().get(JobState.COMPLETED) == 400, timeout=40)
    assert {fold(jobs.kinds(job)) for job in ids} == {JobState.COMPLETED}
    lost = sum(jobs.kinds(job).count("lost") for job in ids)
    assert len(marks.of("begun")) <= 400 + lost
    with closing(sqlite3.connect(sqlite_path(store_url))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
