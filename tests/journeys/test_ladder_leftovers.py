"""Innocents beside what ended jobs left behind, and a memory limit that no process can keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.journeys import ladder_leaks
from tests.journeys.conftest import Jobs, only_sqlite
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.store.port import Store

APP = "tests.journeys.ladder_leaks:app"


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, ladder_leaks.app)


@only_sqlite
@pytest.mark.parametrize("leak", ["leak.callback", "leak.thread"])
def test_a29_the_only_job_beside_a_leftover_that_keeps_the_process_is_not_convicted(
    start: Callable[..., Worker], jobs: Jobs, leak: str
) -> None:
    start(app=APP, concurrency=4, processes=1, times=replace(COMPRESSED, frozen=4.0))
    jobs.until(jobs.enqueue(leak, 1.2, 6.0), JobState.COMPLETED, within=40)
    job = jobs.enqueue("leak.innocent", 20.0)
    eventually(lambda: jobs.get(job).started_at is not None, 40)
    eventually(lambda: _seconds_of(jobs, job) >= 1.0, 10)

    jobs.store.cancel("default", job, by="a test")

    ended = jobs.until(job, *FINAL, within=20)
    assert (ended.state, ended.error_type) != (JobState.FAILED, "ExecutionStuck")
    assert ended.state is JobState.CANCELLED


def _seconds_of(jobs: Jobs, job: str) -> float:
    started = jobs.get(job).started_at
    assert started is not None
    return (jobs.store.now() - started).total_seconds()


@only_sqlite
def test_a_memory_limit_below_what_a_process_starts_with_is_said_and_no_kill_loop(
    start: Callable[..., Worker], jobs: Jobs
) -> None:
    worker = start(app=APP, concurrency=2, processes=1, times=COMPRESSED, memory_limit=5 << 20)
    job = jobs.enqueue("leak.innocent", 0.1)

    def is_said() -> None:
        record = worker.record(jobs.store)
        assert record is not None
        assert "before any job; memory_limit is 5 MiB" in record.info.get("start_error", "")
        assert not record.info["ready"]

    eventually(is_said, 20)
    eventually(lambda: worker.log.read_text().count("executor_failed_to_start") >= 4, 20)
    assert worker.log.read_text().count("executor_killed") <= 6
    assert jobs.state(job) is JobState.QUEUED
