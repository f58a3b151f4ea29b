"""A workflow that gets stuck again and again is shut out while everything else goes on, and let in when mended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journeys.conftest import Jobs
from tests.journeys.guard_app import app
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import commit
from unstuck.model.errors import WorkflowBlacklisted
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

APP = "tests.journeys.guard_app:app"


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, app)


@commit
@pytest.mark.timeout(180)
def test_five_stucks_blacklist_a_workflow_and_lifting_lets_it_run_again(
    start: Callable[..., Worker], jobs: Jobs, db: Store, tmp_path: Path
) -> None:
    """A33, A35, A36: two workers, real handlers that do not stop"""
    mended = str(tmp_path / "mended")
    for _ in range(2):
        start(app=APP, concurrency=2, processes=1)
    culprits = jobs.enqueue_many("deploy", mended, times=5)
    for job in culprits:
        record = jobs.until(job, JobState.FAILED, within=60)
        assert record.error_type == "ExecutionStuck", record.error_message

    [entry] = eventually(db.blacklist, timeout=10)

    assert (entry.workflow, entry.reason, entry.stuck_count) == ("deploy", "auto:stuck:5", 5)
    assert [(n.title, n.count) for n in db.notifications()] == [("Workflow Auto-Blacklisted", 5)]
    with pytest.raises(WorkflowBlacklisted, match="due to repeated stuck executions"):
        jobs.enqueue("deploy", mended)
    with pytest.raises(WorkflowBlacklisted):
        db.resume("default", culprits[0], "kim")
    jobs.until(jobs.enqueue("other"), JobState.COMPLETED, within=20)

    Path(mended).touch()
    [gone] = db.blacklist_remove(None, "deploy", "kim")
    assert gone.removed_by == "kim"
    assert db.marks_against("default", "deploy") == 0
    jobs.until(jobs.enqueue("deploy", mended, timeout=30), JobState.COMPLETED, within=30)


@pytest.mark.timeout(120)
def test_what_waits_when_a_workflow_is_shut_out_fails_or_is_held_within_a_sweep(
    start: Callable[..., Worker], jobs: Jobs, db: Store, tmp_path: Path
) -> None:
    """A35, A36"""
    mended = str(tmp_path / "mended")
    Path(mended).touch()
    failing = jobs.enqueue("deploy", mended)
    held = jobs.enqueue("deploy", mended, on_blacklist="hold", timeout=30)
    db.blacklist_add("*", "deploy", "eats the disk", "kim")

    start(app=APP, concurrency=2, processes=1)

    assert jobs.until(failing, JobState.FAILED, within=40).error_type == "WorkflowBlacklisted"
    assert "eats the disk" in (jobs.until(held, JobState.PENDING).error_message or "")
    assert jobs.kinds(failing) == ["submitted", "failed"]
    db.blacklist_remove(None, "deploy", "kim")
    jobs.until(held, JobState.COMPLETED, within=20)
    assert jobs.kinds(held) == ["submitted", "held", "released", "claimed", "completed"]
