"""What people order a worker to do, and how it leaves, with jobs in it that cannot be stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import unstuck
from tests.journeys.conftest import Jobs, spawn_once
from tests.journeys.ladder import (
    SLACK,
    TIMES,
    Start,
    accompanied,
    capacity_is_whole,
    ended,
    family_is_gone,
    is_alive,
    is_stuck,
    on_sqlite_in_both_modes,
    recycled,
    undisturbed,
    whereabouts,
)
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import at_a_distance
from unstuck.examples import stuck
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store, WorkerOrder


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, stuck.app)


@pytest.fixture
def client(store_url: str) -> Iterator[unstuck.App]:
    """The program that enqueues: another process's view of the same workflows."""
    app = unstuck.App(store_url, name="client")
    for draft in stuck.app._code.drafts.values():
        app._code.drafts[draft.name] = draft
    yield app
    app.close()


def has_started(jobs: Jobs, job: str) -> None:
    eventually(lambda: jobs.get(job).started_at is not None)


def order(jobs: Jobs, worker: Worker, kind: Any, subject: str = "") -> WorkerOrder:
    record = worker.record(jobs.store)
    assert record is not None
    given = jobs.store.give_order(record.number, kind, subject, "a person")

    def answered() -> WorkerOrder:
        found = jobs.store.order(given.number)
        assert found is not None
        assert found.done_at is not None, "nobody answered"
        return found

    return eventually(answered, timeout=5)


@at_a_distance("postgres", mode="fork")
@spawn_once
def test_a31_a_busy_process_is_recycled_by_order_and_its_results_are_stored_first(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs)

    done = order(jobs, company.worker, "recycle", str(company.pid))

    assert not done.is_refused, done.answer
    assert f"{company.pid}" in (done.answer or "")
    probe = json.loads(jobs.until(jobs.enqueue("innocent.sync", 0.1), JobState.COMPLETED).result or "{}")
    assert probe["pid"] != company.pid
    undisturbed(company, company.all)
    family_is_gone(company, within=SLACK + 1)
    reasons = eventually(lambda: [gone["reason"] for gone in recycled(company) if gone["pid"] == company.pid])
    assert "a person" in reasons[0]
    capacity_is_whole(company)


def test_a31_an_unknown_pid_is_a_clear_error(start: Start, jobs: Jobs, client: unstuck.App) -> None:
    company = accompanied(start, jobs, seconds=0.5)

    done = order(jobs, company.worker, "recycle", "1")
    assert done.is_refused
    assert "no process 1" in (done.answer or "")

    with pytest.raises(unstuck.UnstuckError, match="1"):
        client.workers.recycle(1)
    undisturbed(company, company.all)
    assert is_alive(company.pid)


def test_a53_a_worker_drained_by_order_leaves_as_after_term(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs)
    record = company.worker.record(jobs.store)
    assert record is not None

    jobs.store.give_order(record.number, "drain", "", "a person")
    eventually(lambda: [w for w in jobs.store.workers() if w.state == "draining"], timeout=5)
    later = jobs.enqueue("innocent.sync", 0.1)
    company.release()

    assert company.worker.wait(15) == 0
    undisturbed(company, company.all)
    assert jobs.state(later) is JobState.QUEUED


@on_sqlite_in_both_modes
def test_a_live_stack_shows_where_any_kind_of_job_is(start: Start, jobs: Jobs, client: unstuck.App) -> None:
    company = accompanied(start, jobs, sync=1, coroutines=1, times=replace(TIMES, frozen=30.0))
    sleeper = jobs.enqueue("stuck.thread_sleep", 8.0, timeout=60)
    has_started(jobs, sleeper)
    (innocent,) = company.coroutines

    assert "in thread_sleep" in client.job(sleeper).stack().stack
    assert "in innocent_async" in client.job(innocent).stack().stack

    holder = jobs.enqueue("stuck.holds_gil", 6.0, timeout=60)
    has_started(jobs, holder)
    time.sleep(TIMES.unresponsive)
    assert "in hold_interpreter" in client.job(holder).stack().stack

    for job in (sleeper, holder):
        jobs.until(job, JobState.COMPLETED)
    undisturbed(company, company.all)


@pytest.mark.parametrize("culprit", ["thread_sleep", "loop_swallows_interrupt", "holds_gil"])
@on_sqlite_in_both_modes
def test_a54_at_the_drain_limit_what_cannot_be_stopped_is_killed_without_a_verdict(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    """The job did nothing wrong: QUEUED at no cost, and nothing is left of its process."""
    company = accompanied(start, jobs, sync=0, coroutines=0, times=replace(TIMES, drain=0.5))
    job = jobs.enqueue(f"stuck.{culprit}", timeout=60, grace=0.5)
    has_started_or_is_fed(jobs, job)
    company.worker.terminate()

    assert company.worker.wait(15) == 0

    record = jobs.get(job)
    assert (record.state, record.losses, record.failures, record.suspects) == (JobState.QUEUED, 0, 0, 0)
    assert "stuck" not in jobs.kinds(job)
    assert not is_alive(company.pid)


def has_started_or_is_fed(jobs: Jobs, job: str) -> None:
    """One that holds the interpreter cannot even say that it began; the page does."""
    jobs.until(job, JobState.RUNNING)
    eventually(lambda: jobs.get(job).started_at is not None, timeout=5)


@pytest.mark.parametrize(
    ("policy", "state", "losses"),
    [("requeue", JobState.QUEUED, 0), ("pause", JobState.PAUSED, 0), ("expire", JobState.QUEUED, 1)],
)
def test_a54_on_drain_timeout_decides_where_an_endless_job_goes(
    start: Start, jobs: Jobs, policy: str, state: JobState, losses: int
) -> None:
    """One that obeys; `expire` leaves it to what a lost worker would mean: it is charged."""
    company = accompanied(start, jobs, sync=0, coroutines=0, times=replace(TIMES, drain=0.5))
    job = jobs.enqueue("innocent.sync", 60.0, grace=2.0, on_drain_timeout=policy)
    whereabouts(jobs, job)
    company.worker.terminate()

    assert company.worker.wait(15) == 0
    record = jobs.get(job)
    assert (record.state, record.failures, record.losses) == (state, 0, losses)


def test_a53_a54_a_stuck_job_does_not_keep_its_worker_from_leaving(start: Start, jobs: Jobs) -> None:
    """TERM while a process drains: its healthy job finishes, exit 0, nothing is left."""
    company = accompanied(start, jobs)
    is_stuck(ended(jobs, jobs.enqueue("stuck.thread_sleep", timeout=0.3, grace=0.4)), 0.4)
    company.worker.terminate()
    company.release()

    assert company.worker.wait(15) == 0
    undisturbed(company, company.all)
    assert not is_alive(company.pid)
