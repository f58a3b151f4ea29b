"""The database's clock leaps: distances stay, appointments follow the new clock, and nobody pays for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import Leap
from tests.journeys.conftest import Jobs, Marks, only_here
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import LONGER, commit_on_sqlite, slow, torture
from unstuck.model.lifecycle import JobState
from unstuck.store.drivers.leaps import _YOUTH

#: By a server the database's clock is that one's; hosts that are apart: test_remote_trouble.
pytestmark = only_here

HOUR = 3600.0
#: Two workers of many slots start slowly on a busy machine, and that is not the matter here.
LOADED = 45.0
Start = Callable[..., Worker]

#: What a worker's supervisor runs first: on SQLite the database's clock is the host's, and this one tests can move.
MOVED_WALL = """
import datetime, pathlib, unstuck.clock
def wall(real=unstuck.clock.wall, moved=pathlib.Path({path!r})):
    return real() + datetime.timedelta(seconds=float(moved.read_text() or 0))
unstuck.clock.wall = wall
"""


@pytest.fixture
def begin(start: Start, wall_file: Path) -> Start:
    """A worker whose wall clock on SQLite is the one that `leap` moves."""
    return lambda name="", **more: start(name, before=MOVED_WALL.format(path=str(wall_file)), **more)


def noticed(worker: Worker) -> list[str]:
    return [line for line in worker.log.read_text().splitlines() if "store.clock_leapt" in line]


def nobody_paid(jobs: Jobs, ids: list[str]) -> None:
    for job in ids:
        record = jobs.get(job)
        assert (record.losses, record.failures, record.suspects) == (0, 0, 0)
        assert jobs.kinds(job) == ["submitted", "claimed", "completed"]


def are_settled(jobs: Jobs, workers: int) -> bool:
    """Who has just begun lets itself be told by the others, also of a leap."""
    ages = [(jobs.store.now() - worker.started_at).total_seconds() for worker in jobs.store.workers()]
    return len(ages) == workers and min(ages) > _YOUTH


def lasted(jobs: Jobs, job: str) -> float:
    """From its claim to its end, by its history."""
    at = {event.kind: event.at for event in jobs.store.history("default", job)}
    return (at["completed"] - at["claimed"]).total_seconds()


@commit_on_sqlite
def test_after_an_hour_back_delays_and_retries_keep_their_distance(
    begin: Start, jobs: Jobs, marks: Marks, leap: Leap
) -> None:
    worker = begin()
    retried = jobs.enqueue("always_fails", marks.path, backoff_base=3.0, backoff_factor=2.0, retries=1)
    begun = marks.wait_for("begun", within=LOADED)[0][1]
    (delayed,) = jobs.submit("add", 1, 1, delay=3.0)
    jobs.until(retried, JobState.QUEUED)
    (appointed,) = jobs.submit("add", 1, 1, start_at=jobs.store.now() + timedelta(seconds=2))
    leap(-HOUR)

    jobs.until(retried, JobState.FAILED, within=10)
    assert 3.0 <= marks.of("begun")[1][1] - begun < 8
    jobs.until(delayed, JobState.COMPLETED, within=5)
    assert jobs.state(appointed) is JobState.QUEUED, "an instant is one of the new clock"
    assert len(noticed(worker)) == 1


def test_an_hour_forward_costs_nobody_anything(begin: Start, jobs: Jobs, marks: Marks, leap: Leap) -> None:
    first, second = begin("first"), begin("second")
    ids = jobs.enqueue_many("nap", marks.path, 6.0, times=8)
    (delayed,) = jobs.submit("add", 1, 1, delay=600.0)
    (appointed,) = jobs.submit("add", 1, 1, start_at=jobs.store.now() + timedelta(seconds=1800))
    marks.wait_for("begun", 8, within=LOADED)
    leap(HOUR)

    jobs.until(appointed, JobState.COMPLETED, within=10)
    for job in ids:
        jobs.until(job, JobState.COMPLETED, within=15)
        assert 5.5 < lasted(jobs, job) < 12
        assert 5500 < (jobs.get(job).duration_ms or 0) < 12000
    nobody_paid(jobs, ids)
    assert len(marks.of("begun")) == 8, "no body began twice"
    assert jobs.state(delayed) is JobState.QUEUED
    assert len(noticed(first) + noticed(second)) == 1


@pytest.mark.parametrize("leaps", [pytest.param(20, marks=slow), pytest.param(20 * LONGER, marks=torture)])
def test_a_clock_that_leaps_to_and_fro_costs_nobody_anything(
    begin: Start, jobs: Jobs, marks: Marks, leap: Leap, leaps: int
) -> None:
    for name in ("first", "second"):
        begin(name, concurrency=12)
    eventually(lambda: are_settled(jobs, 2), timeout=LOADED)
    ids = jobs.enqueue_many("nap", marks.path, leaps * 0.7, times=24)
    marks.wait_for("begun", 24, within=LOADED)
    for n in range(leaps):
        leap(300.0 if n % 2 else -300.0)
        time.sleep(0.7)
    for job in ids:
        jobs.until(job, JobState.COMPLETED, within=30)
    nobody_paid(jobs, ids)
    assert len(marks.of("begun")) == 24, "no body began twice"
