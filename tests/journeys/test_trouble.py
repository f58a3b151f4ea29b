"""Real workers and one row that the database refuses: fifty others end, nothing is lost, and all comes home."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.journeys.conftest import Jobs, Marks, only_here
from tests.support.eventually import eventually
from tests.support.troubles import allow, refuse
from tests.support.workers import COMPRESSED, Worker
from unstuck.model.lifecycle import JobState

#: What the database refuses alone a worker at a distance does not set aside.
pytestmark = only_here

Start = Callable[..., Worker]


def test_fifty_settle_beside_one_that_cannot_and_it_lands_with_its_result(
    start: Start, jobs: Jobs, store_url: str
) -> None:
    others = jobs.enqueue_many("noop", times=50)
    bad = jobs.enqueue("add", 2, 3)
    refuse(store_url, "unstuck_done", f"NEW.job = {jobs.get(bad).number}")
    start()

    for job in others:
        jobs.until(job, JobState.COMPLETED, within=30)
    eventually(lambda: [found.duty for found in jobs.store.quarantined("default", job=bad)] == ["settle"], timeout=20)
    assert jobs.state(bad) is JobState.RUNNING
    jobs.until(jobs.enqueue("noop"), JobState.COMPLETED)

    allow(store_url, "unstuck_done")
    assert jobs.until(bad, JobState.COMPLETED).result == "5"
    eventually(lambda: jobs.store.quarantined() == [])


def test_a_worker_that_is_told_to_leave_with_such_a_report_leaves(start: Start, jobs: Jobs, store_url: str) -> None:
    bad = jobs.enqueue("add", 2, 3)
    refuse(store_url, "unstuck_done", f"NEW.job = {jobs.get(bad).number}")
    worker = start(times=replace(COMPRESSED, drain=1.0))
    eventually(lambda: jobs.store.quarantined() != [], timeout=20)

    worker.terminate()

    assert worker.process.wait(30) == 0
    record = jobs.get(bad)
    assert (record.state, record.losses) == (JobState.QUEUED, 0)


def test_the_jobs_of_a_killed_worker_are_rescued_beside_one_that_cannot_be(
    start: Start, jobs: Jobs, marks: Marks, store_url: str
) -> None:
    ids = jobs.enqueue_many("nap", marks.path, 3.0, times=6)
    bad, *others = ids
    first = start(concurrency=6)
    eventually(lambda: jobs.store.counts()[JobState.RUNNING] == 6, timeout=20)
    first.kill_all()
    refuse(store_url, "unstuck_events", f"NEW.job = {jobs.get(bad).number}")
    start(concurrency=6)

    for job in others:
        jobs.until(job, JobState.COMPLETED, within=40)
    eventually(
        lambda: [found.duty for found in jobs.store.quarantined("default", job=bad)] == ["recover"], timeout=20
    )
    assert jobs.state(bad) is JobState.RUNNING

    allow(store_url, "unstuck_events")
    jobs.until(bad, JobState.COMPLETED, within=30)
    eventually(lambda: jobs.store.quarantined() == [], timeout=20)
