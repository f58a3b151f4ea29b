"""Processes that die of their start, or never come to an end of it; and a job that only looks like that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.journeys import brittle_app
from tests.journeys.conftest import Jobs
from tests.journeys.ladder import on_sqlite_in_both_modes
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.store.port import Store

APP = "tests.journeys.brittle_app:app"
pytestmark = on_sqlite_in_both_modes


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, brittle_app.app)


@pytest.fixture
def start_brittle(start: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Worker]:
    def start_it(brittle: str, **options: Any) -> Worker:
        monkeypatch.setenv("BRITTLE", brittle)
        return start(app=APP, **options)

    return start_it


def is_said(worker: Worker, jobs: Jobs, what: str) -> None:
    record = worker.record(jobs.store)
    assert record is not None
    assert what in record.info.get("start_error", "")
    assert not record.info["ready"]


def test_processes_that_die_right_after_they_were_ready_are_rested_and_burn_nobody(
    start_brittle: Callable[..., Worker], jobs: Jobs, tmp_path: Path
) -> None:
    """A12: and once they last, everything is done."""
    healed = tmp_path / "healed"
    ids = jobs.enqueue_many("brittle.quick", times=6)
    worker = start_brittle(f"heals:0.1:{healed}")

    eventually(lambda: worker.log.read_text().count("executor_failed_to_start") >= 5, 40)
    eventually(lambda: is_said(worker, jobs, "s after it was ready: exit 5"), 10)
    assert worker.log.read_text().count("executor_died") <= 10
    assert not [jobs.get(job) for job in ids if jobs.state(job) in FINAL]

    healed.touch()
    for job in ids:
        assert jobs.until(job, *FINAL, within=60).state is JobState.COMPLETED
    eventually(lambda: _is_well(worker, jobs), 20)


def _is_well(worker: Worker, jobs: Jobs) -> None:
    record = worker.record(jobs.store)
    assert record is not None
    assert (record.info.get("start_error"), record.info["ready"]) == (None, True)


def test_a_start_hook_that_hangs_is_a_failed_start_each_time(
    start_brittle: Callable[..., Worker], jobs: Jobs, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    job = jobs.enqueue("brittle.quick")
    worker = start_brittle("hangs", processes=2, times=replace(COMPRESSED, import_limit=5.0), ready_file=str(ready))

    eventually(lambda: worker.log.read_text().count("executor_died") >= 4, 60)
    eventually(lambda: is_said(worker, jobs, "it was not ready after 5 s"), 10)

    def each_is_counted() -> None:
        log = worker.log.read_text()
        assert log.count("executor_failed_to_start") == log.count("executor_died")

    eventually(each_is_counted, 5)
    assert (jobs.state(job), ready.exists()) == (JobState.QUEUED, False)


def test_a_job_that_ends_its_process_at_its_first_line_is_convicted_and_the_worker_stays_ready(
    start_brittle: Callable[..., Worker], jobs: Jobs
) -> None:
    """A12: its processes are all new, and it is the one who ends them."""
    worker = start_brittle("")
    job = jobs.enqueue("brittle.poison")

    ended = jobs.until(job, *FINAL, within=40)

    assert (ended.state, ended.error_type) == (JobState.FAILED, "ProcessDied")
    assert "executor_failed_to_start" not in worker.log.read_text()
    assert jobs.until(jobs.enqueue("brittle.quick"), *FINAL, within=20).state is JobState.COMPLETED
