"""Partial results with real workers: seen while the job runs, kept over a killed attempt, and none twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import unstuck
from tests.journeys.conftest import Jobs, Marks, spawn_once
from tests.journeys.flow_app import app as flow_app
from tests.support.workers import Worker
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

APP = "tests.journeys.flow_app:app"
T = "default"
Start = Callable[..., Worker]


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, flow_app)


@spawn_once
@pytest.mark.parametrize("workflow", ["pages", "pages_async"])
def test_parts_are_seen_while_the_job_runs_and_outlive_the_attempt_that_gave_them(
    start: Start, jobs: Jobs, marks: Marks, db: Store, store_url: str, workflow: str
) -> None:
    """Killed halfway, its successor gives the same names again and goes on; a wait changes nothing either."""
    job = jobs.enqueue(workflow, marks.path, 4)
    first = start("first", app=APP)
    with unstuck.App(store_url) as app, ThreadPoolExecutor(1) as thread:
        following = thread.submit(_followed, app, job)
        marks.wait_for("halfway", within=30)
        assert jobs.state(job) is JobState.RUNNING
        halfway = _given(app, job)
        assert halfway == {"page 1": {"number": 1}, "page 2": {"number": 2}, "finished": 2}

        first.kill_all()
        assert _given(app, job) == halfway
        start("second", app=APP)
        assert app.job(job).result(timeout=30) == 4
        seen = following.result(timeout=30)

        pages = {f"page {number}": {"number": number} for number in (1, 2, 3, 4)}
        assert _given(app, job) == {**pages, "finished": 4, "last": "the end"}
    assert seen[-1].name == "last"
    assert seen[-1].number == 2 * 2 + 2 * 8 + 1, "half of it, the whole of it, the whole of it once more, the last"
    assert [part.number for part in seen] == sorted({part.number for part in seen})
    assert {part.attempt for part in seen} >= {1, 3}
    assert {part.token for part in db.parts_of(T, job)} == {3}
    kinds = jobs.kinds(job)
    assert (kinds.count("lost"), kinds.count("woken")) == (1, 1), kinds


def _given(app: unstuck.App, job: str) -> dict[str, object]:
    return {part.name: part.value for part in app.job(job).partials()}


def _followed(app: unstuck.App, job: str) -> list[unstuck.PartialView]:
    return list(app.job(job).follow_partials())


def test_a_part_that_cannot_be_kept_fails_its_job_at_once(start: Start, jobs: Jobs) -> None:
    """And is not tried again: it would be too large the next time, too."""
    job = jobs.enqueue("gives_too_much", retries=5)
    start(app=APP)
    ended = jobs.until(job, JobState.FAILED, within=30)
    assert (ended.error_type, ended.token) == ("NotStorable", 1)
    assert "the limit is 65,536" in (ended.error_message or "")
