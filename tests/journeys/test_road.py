"""The road, end to end: enqueue, run, settle."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tests.journeys.conftest import Jobs, Marks, both_modes, spawn_once
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import at_a_distance, commit
from unstuck.model.lifecycle import JobState, fold

Start = Callable[..., Worker]


@commit
@both_modes
def test_sync_async_and_solitary_jobs_complete(start: Start, jobs: Jobs, mode: str) -> None:
    worker = start()
    ids = {name: jobs.enqueue(name, 2, 3) for name in ("add", "add_later", "add_alone")}
    for job in ids.values():
        record = jobs.until(job, JobState.COMPLETED, within=30)
        assert record.result == "5"
        assert jobs.kinds(job) == ["submitted", "claimed", "completed"]

    def shown() -> Any:
        record = worker.record(jobs.store)
        return record and record.info.get("mode")

    assert eventually(shown) == mode


@at_a_distance("postgres", mode="fork")
@commit
@spawn_once
def test_a_thousand_jobs_run_exactly_once_each(start: Start, jobs: Jobs) -> None:
    """A1, A13"""
    ids = jobs.enqueue_many("noop", times=1000)
    start(concurrency=8, processes=2)
    start(concurrency=8, processes=2)

    eventually(lambda: jobs.store.counts().get(JobState.COMPLETED) == 1000, timeout=60)
    for job in ids[::50]:
        kinds = jobs.kinds(job)
        assert kinds.count("completed") == 1
        assert fold(kinds) is JobState.COMPLETED


@spawn_once
def test_what_a_handler_said_is_stored_with_its_attempt(start: Start, jobs: Jobs) -> None:
    start()
    job = jobs.enqueue("says")
    jobs.until(job, JobState.COMPLETED)
    (attempt,) = jobs.store.attempts("default", job)
    assert "hello from the handler" in (attempt.output or "")
    assert jobs.store.progress_of("default", job) == '{"done":1}'


@at_a_distance("postgres", mode="fork")
@commit
@spawn_once
def test_a_failing_job_runs_four_times_with_growing_gaps_and_keeps_its_own_error(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A14"""
    start()
    job = jobs.enqueue("always_fails", marks.path)
    record = jobs.until(job, JobState.FAILED, within=30)

    begun = [at for _, at in marks.of("begun")]
    gaps = [later - sooner for sooner, later in itertools.pairwise(begun)]
    assert len(begun) == 4
    # The gaps that were decided grow, and each was kept; how soon a due job is met is another promise.
    delays = [event.data["delay"] for event in jobs.store.history("default", job) if event.kind == "retried"]
    assert delays == sorted(set(delays))
    assert all(gap >= delay for gap, delay in zip(gaps, delays, strict=True)), (gaps, delays)
    assert (record.error_type, record.error_message) == ("ValueError", "this never works")


def test_a_delayed_retry_and_a_long_backlog_never_leave_a_job_behind(start: Start, jobs: Jobs) -> None:
    ids = jobs.enqueue_many("add", 1, 1, times=300)
    start(concurrency=3)
    eventually(lambda: all(jobs.state(job) is JobState.COMPLETED for job in ids[-3:]), timeout=60)
    eventually(lambda: jobs.store.counts().get(JobState.COMPLETED) == 300, timeout=30)
