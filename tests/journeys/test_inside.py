"""What surrounds a handler: middleware, its output, and the jobs it enqueues."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.journeys.conftest import Jobs, Marks, both_modes, only_here, spawn_once
from tests.journeys.inside import app
from tests.support.eventually import eventually
from tests.support.workers import Worker
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

Start = Callable[..., Worker]
APP = "tests.journeys.inside:app"
AROUND = ["inner in, job True", "body", "inner out", "outer out"]


@pytest.fixture
def inside(db: Store) -> Jobs:
    return Jobs(db, app)


def said(jobs: Jobs, job: str) -> list[list[str]]:
    return [(attempt.output or "").splitlines() for attempt in jobs.store.attempts("default", job)]


@spawn_once
def test_middleware_runs_around_every_attempt_of_every_kind(start: Start, inside: Jobs) -> None:
    start(app=APP)
    ids = [inside.enqueue(name) for name in ("plain", "coroutine", "solitary")]
    for job in ids:
        inside.until(job, JobState.COMPLETED, within=30)
        assert said(inside, job) == [["outer in 1", *AROUND]]

    failing = inside.enqueue("fails")
    inside.until(failing, JobState.FAILED)
    # The inner one, which minds no error, never comes to its end.
    assert said(inside, failing) == [
        [f"outer in {attempt}", "inner in, job True", "body", "outer out"] for attempt in (1, 2)
    ]


@only_here
@both_modes
def test_handlers_enqueue_into_the_database_of_their_worker(start: Start, inside: Jobs) -> None:
    start(app=APP)
    for name in ("parent", "parent_async", "parent_alone"):
        family = inside.until(inside.enqueue(name, 3), JobState.COMPLETED, within=30)
        children = json.loads(family.result or "[]")
        assert len(children) == 3
        results = [inside.until(job, JobState.COMPLETED).result for job in children]
        assert results == ["0", "1", "4"]


@both_modes
def test_what_a_handler_said_survives_the_kill_of_its_process(start: Start, jobs: Jobs, marks: Marks) -> None:
    start()
    job = jobs.enqueue("says_and_stays", marks.path, on_lost="fail")
    ((pid, at),) = marks.wait_for("begun")
    _wait_until(at + 1.0)
    os.kill(pid, signal.SIGKILL)

    jobs.until(job, JobState.FAILED, within=5)
    ((*lines,),) = said(jobs, job)
    assert lines[0] == "printed before the end"
    assert "logged before the end" in lines[1]


@spawn_once
def test_what_a_handler_said_survives_the_kill_of_its_whole_worker(start: Start, jobs: Jobs, marks: Marks) -> None:
    """It is in the database while the handler runs, so it does not matter who dies."""
    first = start("first")
    job = jobs.enqueue("says_and_stays", marks.path, on_lost="fail")
    marks.wait_for("begun")
    eventually(lambda: len(said(jobs, job)[0]) == 2, timeout=5)
    assert jobs.state(job) is JobState.RUNNING
    first.kill_all()
    start("second")

    jobs.until(job, JobState.FAILED, within=15)
    ((*lines,),) = said(jobs, job)
    assert lines[0] == "printed before the end"
    assert "logged before the end" in lines[1]


def _wait_until(at: float) -> None:
    eventually(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) >= at)
