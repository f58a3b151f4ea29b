"""Stories around the ladder: who must not be convicted, and what a verdict leaves in order."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import unstuck
from tests.journeys.conftest import Jobs, spawn_once
from tests.journeys.ladder import (
    APP,
    SLACK,
    TIMES,
    Start,
    accompanied,
    capacity_is_whole,
    ended,
    executors,
    family_is_gone,
    is_alive,
    is_stuck,
    on_sqlite_in_both_modes,
    rerun_at_no_cost,
    story,
    turns,
    undisturbed,
    whereabouts,
)
from tests.support.eventually import eventually
from tests.tiers import at_a_distance, commit_on_sqlite
from unstuck.examples import stuck
from unstuck.intake.submit import Options
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

#: Ten times `unresponsive` are seconds, and a frozen process has no patience with its culprit.
QUICK = replace(TIMES, unresponsive=0.5, frozen=1.0)


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


@at_a_distance("sqlite", mode="fork", culprit="thread_sleep")
@pytest.mark.parametrize("culprit", ["thread_sleep", "loop_sleep", "holds_gil"])
@spawn_once
def test_a9_a_handler_alone_in_its_process_may_block_whatever_it_likes_while_its_limit_allows(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    """Ten times `unresponsive`, five times `frozen`: beats go on, nobody is a zombie, it completes."""
    company = accompanied(start, jobs, sync=0, coroutines=0, times=QUICK)
    job = jobs.enqueue(f"stuck.{culprit}", 10 * QUICK.unresponsive, timeout=60)
    ages = []

    def over() -> bool:
        record = company.worker.record(jobs.store)
        assert record is not None
        ages.append((jobs.store.now() - record.heartbeat_at).total_seconds())
        return jobs.state(job).is_final

    eventually(over, timeout=20, every=0.1)

    ending = ended(jobs, job)
    assert turns(jobs, job) == ["submitted", "claimed", "completed"], story(ending)
    assert ending.record.duration_ms is not None
    assert ending.record.duration_ms >= 10_000 * QUICK.unresponsive - 100
    assert max(ages) < 2 * QUICK.beat + QUICK.store_call
    assert company.worker.process.poll() is None


@on_sqlite_in_both_modes
def test_a24_who_finishes_inside_its_grace_is_late_and_its_process_stays(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs)
    ending = ended(jobs, jobs.enqueue("stuck.thread_sleep", 1.0, timeout=0.4, grace=5))
    assert (ending.record.state, ending.record.late) == (JobState.COMPLETED, True)
    undisturbed(company, company.all)
    assert [(post["pid"], post["state"]) for post in executors(company)] == [(company.pid, "active")]


@on_sqlite_in_both_modes
def test_a29_a_coroutine_whose_loop_another_blocks_is_never_convicted(start: Start, jobs: Jobs) -> None:
    """Its limit and its grace pass while the loop stands still; it gets its whole grace once the loop is free."""
    company = accompanied(start, jobs, sync=0, coroutines=0, times=replace(TIMES, frozen=30.0))
    victim = jobs.enqueue("innocent.async", 30.0, timeout=3.0, grace=0.5)
    whereabouts(jobs, victim)
    blocker = jobs.enqueue("stuck.loop_swallows_interrupt", 6.0, timeout=60)

    ending = ended(jobs, victim, within=15)

    assert ending.record.state is JobState.TIMEOUT, story(ending)
    assert ending.took("requested") > 1.0, "the loop was free before its grace had passed: this shows nothing"
    assert jobs.until(blocker, JobState.COMPLETED).late is False
    assert [post["pid"] for post in executors(company)] == [company.pid]


@on_sqlite_in_both_modes
def test_a_loop_stalled_for_too_long_frees_itself_of_the_job_that_stalls_it(start: Start, jobs: Jobs) -> None:
    """Nobody asked it to stop: it is interrupted for its neighbours' sake and reruns alone, uncharged."""
    company = accompanied(start, jobs, times=QUICK)
    job = jobs.enqueue("stuck.loop_sleep", 3.0, timeout=60)

    ending = ended(jobs, job, within=20)

    assert ending.record.state is JobState.COMPLETED, story(ending)
    assert (ending.record.losses, ending.record.failures) == (0, 0)
    assert turns(jobs, job) == ["submitted", "claimed", "lost", "claimed", "completed"], story(ending)
    undisturbed(company, company.all)


@spawn_once
def test_a25_a29_a_frozen_process_is_killed_for_its_neighbours_and_they_pay_nothing(start: Start, jobs: Jobs) -> None:
    """The culprit's limit is far away; it is known all the same, and completes by itself."""
    company = accompanied(start, jobs, times=QUICK)
    job = jobs.enqueue("stuck.holds_gil", 3.0, timeout=60, max_lost=3)

    rerun_at_no_cost(company, company.all, because_of=job)

    ending = ended(jobs, job, within=20)
    assert ending.record.state is JobState.COMPLETED, story(ending)
    assert turns(jobs, job) == ["submitted", "claimed", "lost", "claimed", "completed"], story(ending)
    family_is_gone(company)
    capacity_is_whole(company)


@on_sqlite_in_both_modes
def test_a25_where_nothing_tells_who_holds_the_interpreter_all_are_suspects(start: Start, jobs: Jobs) -> None:
    """Its neighbours wait in calls that need no interpreter and look just like it; only it was past its grace."""
    company = accompanied(start, jobs, sync=0, coroutines=0)
    sleepers = jobs.enqueue_many("stuck.thread_sleep", 4.5, times=2, timeout=60)
    for job in sleepers:
        has_started(jobs, job)
    culprit = jobs.enqueue("stuck.holds_gil", timeout=0.5, grace=1.0)

    ending = ended(jobs, culprit)

    assert ending.record.error_type == "ExecutionStuck", story(ending)
    assert "nothing says which one did it" in (ending.record.error_message or ""), story(ending)
    assert ending.took("requested") <= 1.0 + SLACK, story(ending)
    for job in sleepers:
        record = jobs.until(job, JobState.COMPLETED, within=20)
        assert (record.losses, record.failures, record.suspects) == (0, 0, 1)
    family_is_gone(company)


@spawn_once
def test_a29_on_lost_decides_about_neighbours_that_must_not_run_twice(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs, sync=1, coroutines=0)
    once = jobs.enqueue("innocent.sync", 20.0, on_lost="fail")
    pausing = jobs.enqueue("innocent.async", 20.0, on_lost="pause")
    for job in (once, pausing):
        assert whereabouts(jobs, job)["pid"] == company.pid
    culprit = jobs.enqueue("stuck.holds_gil", timeout=0.5, grace=1.0)

    is_stuck(ended(jobs, culprit), 1.0)

    failed = jobs.until(once, JobState.FAILED, within=5)
    assert failed.error_type == "ProcessDied"
    assert culprit in (failed.error_message or "")
    jobs.until(pausing, JobState.PAUSED, within=5)
    rerun_at_no_cost(company, company.sync, because_of=culprit)


@at_a_distance("sqlite", mode="fork")
@commit_on_sqlite
@spawn_once
def test_a26_a_stuck_thread_that_finishes_later_changes_nothing(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs, seconds=5.5)
    job = jobs.enqueue("stuck.thread_sleep", 3.5, timeout=0.3, grace=0.4)
    ending = ended(jobs, job)
    is_stuck(ending, 0.4)

    undisturbed(company, company.all)  # the stuck thread has long finished by then, in the same process

    assert jobs.kinds(job) == [event.kind for event in ending.events]
    assert jobs.get(job).result is None
    family_is_gone(company, within=SLACK)


@on_sqlite_in_both_modes
def test_a28_a_draining_process_lives_as_long_as_its_healthy_job_and_takes_no_other(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs, sync=1, coroutines=1)
    is_stuck(ended(jobs, jobs.enqueue("stuck.thread_sleep", timeout=0.3, grace=0.4)), 0.4)
    eventually(lambda: "draining" in [post["state"] for post in executors(company) if post["pid"] == company.pid])

    fresh = jobs.enqueue_many("innocent.sync", 0.3, times=8)
    told = [json.loads(jobs.until(job, JobState.COMPLETED).result or "{}") for job in fresh]
    assert company.pid not in {where["pid"] for where in told}
    assert is_alive(company.pid)

    undisturbed(company, company.all)
    family_is_gone(company, within=SLACK)


@at_a_distance("postgres", decision="skip")
@pytest.mark.parametrize("decision", ["resume", "resolve", "skip", "continue"])
def test_a30_the_next_body_on_a_target_starts_only_after_the_stuck_process_is_gone(
    start: Start, jobs: Jobs, client: unstuck.App, decision: str
) -> None:
    company = accompanied(start, jobs, sync=1, coroutines=0)
    on_failure = "continue" if decision == "continue" else "block"
    first = _on_target(client, "stuck.thread_sleep", 60.0, timeout=0.3, grace=0.4, on_failure=on_failure)
    second = _on_target(client, "innocent.sync", 0.2)
    is_stuck(ended(jobs, first.id), 0.4)
    assert is_alive(company.pid)

    _decide(first, decision)
    beside = jobs.enqueue("innocent.sync", 0.1)  # whoever would begin too early has had its turn after it
    jobs.until(beside, JobState.COMPLETED)
    company.release()

    next_one = first if decision == "resume" else second
    began = _began_again(jobs, next_one, attempt=2 if decision == "resume" else 1)
    undisturbed(company, company.all)
    (innocent,) = company.all
    assert began >= json.loads(jobs.get(innocent).result or "{}")["ended"], "two bodies at once on one target"
    assert not is_alive(company.pid)


@pytest.mark.parametrize("decision", ["resolve", "skip"])
def test_a30_also_when_the_worker_of_the_stuck_process_dies_first(
    start: Start, jobs: Jobs, client: unstuck.App, decision: str
) -> None:
    company = accompanied(start, jobs, seconds=30.0, sync=1, coroutines=0)
    first = _on_target(client, "stuck.thread_sleep", 60.0, timeout=0.3, grace=0.4)
    second = _on_target(client, "innocent.sync", 0.2)
    is_stuck(ended(jobs, first.id), 0.4)
    _decide(first, decision)

    assert jobs.state(second.id) is JobState.QUEUED
    company.worker.kill()
    start("other", app=APP, times=TIMES)

    _began_again(jobs, second, attempt=1)
    assert not is_alive(company.pid)
    assert jobs.until(second.id, JobState.COMPLETED).losses == 0


def _on_target(client: unstuck.App, workflow: str, *args: object, **policy: Any) -> unstuck.Job[Any]:
    (job,) = client._code.prepared(workflow, Options().with_(target="one-at-a-time", **policy))([(args, {})])
    return job


def _decide(job: unstuck.Job[Any], decision: str) -> None:
    match decision:
        case "resume":
            job.resume(by="me")
        case "resolve":
            job.resolve(None, by="me")
        case "skip":
            job.skip(by="me")


def _began_again(jobs: Jobs, job: unstuck.Job[Any], attempt: int) -> float:
    """When its body began, by the clock of the test; no earlier than it really did, but for a poll."""
    eventually(lambda: sum(kind == "claimed" for kind in jobs.kinds(job.id)) >= attempt, timeout=20)
    claimed = [event.at for event in jobs.store.history("default", job.id) if event.kind == "claimed"]
    return claimed[-1].timestamp()


@on_sqlite_in_both_modes
def test_a22_a_cancelled_job_whose_process_dies_ends_cancelled(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs, sync=0, coroutines=0)
    job = jobs.enqueue("stuck.swallows_cancel", timeout=60, grace=30, max_lost=3, retries=3)
    has_started(jobs, job)
    jobs.store.cancel("default", job, "a person")
    eventually(lambda: jobs.get(job).request is not None)
    os.kill(company.pid, signal.SIGKILL)

    ending = ended(jobs, job)

    assert ending.record.state is JobState.CANCELLED, story(ending)
    assert turns(jobs, job) == ["submitted", "claimed", "requested", "cancelled"], story(ending)


@at_a_distance("sqlite", mode="fork")
@spawn_once
def test_a22_a_stuck_job_is_never_retried_and_a_resumed_one_begins_clean(start: Start, jobs: Jobs) -> None:
    """A15"""
    company = accompanied(start, jobs, sync=0, coroutines=0)
    job = jobs.enqueue("stuck.thread_sleep", timeout=0.3, grace=0.3, retries=5, retry_on_timeout=True)
    is_stuck(ended(jobs, job), 0.3)
    family_is_gone(company)

    jobs.store.resume("default", job, "a person")
    record = ended(jobs, job).record
    assert (record.run, record.error_type) == (2, "ExecutionStuck")
    assert jobs.kinds(job).count("claimed") == 2


@at_a_distance("sqlite")
def test_a19_an_interrupt_pauses_what_runs_and_what_waits(start: Start, jobs: Jobs) -> None:
    accompanied(start, jobs, sync=0, coroutines=0, slots=1)
    running = jobs.enqueue("innocent.sync", 30.0)
    whereabouts(jobs, running)
    waiting = jobs.enqueue("innocent.sync", 0.1)

    for job in (waiting, running):  # the other way round the slot would be free for it
        jobs.store.interrupt("default", job, "a person")

    record = jobs.until(running, JobState.PAUSED)
    assert (record.error_message, record.request) == ("Job was interrupted by user", None)
    assert jobs.until(waiting, JobState.PAUSED).started is False
    jobs.store.resume("default", waiting, "a person")
    assert jobs.until(waiting, JobState.COMPLETED).run == 2
