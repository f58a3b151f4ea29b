"""Several workers, worn processes, jobs fetched ahead: work goes where there is room and none is lost."""

from __future__ import annotations

from collections.abc import Callable

from tests.journeys.conftest import Jobs, Marks, both_modes, spawn_once
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import commit_on_sqlite
from unstuck.model.lifecycle import JobState

Start = Callable[..., Worker]


def all_complete(jobs: Jobs, ids: list[str], within: float) -> None:
    eventually(lambda: jobs.store.counts().get(JobState.COMPLETED) == len(ids), timeout=within)
    for job in ids:
        record = jobs.get(job)
        assert (record.failures, record.losses, record.suspects) == (0, 0, 0), jobs.kinds(job)


@commit_on_sqlite
@both_modes
def test_a_process_is_replaced_after_its_number_of_jobs_and_nothing_is_lost(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A31: results of running jobs are stored first; what had not started goes back at no cost."""
    worker = start(concurrency=2, max_jobs_per_process=5)
    ids = jobs.enqueue_many("blink", marks.path, 0.05, times=40)

    all_complete(jobs, ids, within=60)
    begun = [pid for pid, _ in marks.of("begun")]
    assert len(begun) == 40
    assert len(set(begun)) >= 3
    assert "it has run" in worker.log.read_text()


@spawn_once
def test_a_process_that_grows_too_large_is_replaced_and_nothing_is_lost(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A31"""
    worker = start(concurrency=1, max_memory=300 << 20)
    ids = jobs.enqueue_many("leak", marks.path, 150, times=8)

    all_complete(jobs, ids, within=60)
    begun = [pid for pid, _ in marks.of("begun")]
    assert len(begun) == 8
    assert len(set(begun)) >= 2
    assert "it uses" in worker.log.read_text()


@spawn_once
def test_a_second_worker_that_joins_takes_its_share(start: Start, jobs: Jobs, marks: Marks) -> None:
    start("first", concurrency=2)
    ids = jobs.enqueue_many("nap", marks.path, 2.0, times=8)
    first = {pid for pid, _ in marks.wait_for("begun", 2)}
    start("second", concurrency=2)

    all_complete(jobs, ids, within=30)
    begun = [pid for pid, _ in marks.of("begun")]
    assert len(begun) == 8
    assert set(begun) - first
    assert {attempt.worker for job in ids for attempt in jobs.store.attempts("default", job)} == {"first", "second"}


def test_jobs_fetched_ahead_behind_a_slow_one_go_to_another_worker_at_no_cost(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """What has not started within a second is given back, uncharged, and nobody waits for the slow one."""
    start("first", concurrency=1)
    warm = jobs.enqueue_many("blink", marks.path, 0.0, times=10)
    marks.wait_for("ended", 10)
    slow = jobs.enqueue("blink", marks.path, 60.0)
    marks.wait_for("begun", 11)
    quick = jobs.enqueue_many("blink", marks.path, 0.0, times=200)
    eventually(lambda: jobs.store.counts().get(JobState.RUNNING, 0) > 1)
    start("second", concurrency=1)

    all_complete(jobs, [*warm, *quick], within=20)
    assert jobs.state(slow) is JobState.RUNNING
    assert any("given_back" in jobs.kinds(job) for job in quick)
    assert len(marks.of("begun")) == 211
