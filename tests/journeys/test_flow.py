"""Durable flow with real workers: steps, waits, children and budgets survive what happens to their processes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import Jobs, Marks, only_here, only_sqlite, spawn_once
from tests.journeys.flow_app import app as flow_app
from tests.support.eventually import eventually
from tests.support.tables import ask
from tests.support.workers import COMPRESSED, Worker
from tests.tiers import at_a_distance, commit
from unstuck.model.job import AttemptRef, JobRecord
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.model.settlement import Returned
from unstuck.model.waits import Answer
from unstuck.store.port import Report, Store, Verdict

APP = "tests.journeys.flow_app:app"
T = "default"
#: Whatever comes in time under these did not come by a sweep.
SELDOM = replace(COMPRESSED, lease=120.0, sweep=60.0)
Start = Callable[..., Worker]


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, flow_app)


def result_of(jobs: Jobs, job: str, within: float = 30.0) -> Any:
    return json.loads(jobs.until(job, JobState.COMPLETED, within=within).result or "null")


@commit
def test_what_steps_and_partial_results_give_need_not_be_what_the_workflow_returns(start: Start, jobs: Jobs) -> None:
    start(app=APP)
    assert result_of(jobs, jobs.enqueue("keeps_many_types")) == "None 3 ['a', 'b']"


@at_a_distance("postgres", mode="fork", workflow="release")
@spawn_once
@pytest.mark.parametrize("workflow", ["release", "release_async"])
def test_a_release_survives_the_death_of_its_worker_at_every_stage(
    start: Start, jobs: Jobs, marks: Marks, db: Store, workflow: str
) -> None:
    """A50: build, approval, deploy; the worker is killed while it waits, and again when it was approved."""
    job = jobs.enqueue(workflow, marks.path)
    first = start("first", app=APP)
    before = jobs.until(job, JobState.WAITING, within=30)
    first.kill_all()
    assert jobs.state(job) is JobState.WAITING
    (wait,) = db.waits_of(T, job)
    assert wait.wait.name == "Deploy?"

    second = start("second", app=APP)
    eventually(lambda: second.record(db) is not None, timeout=10)
    second.kill_all()
    db.decide(T, job, Answer.APPROVED, "ann", "go on")
    start("third", app=APP)
    built, by, deployed = result_of(jobs, job)

    assert by == "ann"
    assert str(built).startswith("build")
    assert str(deployed).startswith("deploy")
    assert len(marks.of("build")) == len(marks.of("deploy")) == 1
    assert [step.name for step in db.steps_of(T, job)] == ["build", "deploy"]
    assert before.run == jobs.get(job).run
    kinds = jobs.kinds(job)
    assert kinds.count("parked") == kinds.count("woken") == 1, kinds


def test_each_step_is_recorded_once_whatever_is_killed_between_them(
    start: Start, jobs: Jobs, db: Store, tmp_path: Path
) -> None:
    """KILL at 200 random places between and within steps: every result is recorded once, every job completes."""
    kills, steps = 200, 60
    paths = [tmp_path / f"job-{n}" for n in range(12)]
    ids = [jobs.enqueue("many_steps", str(path), steps, kills) for path in paths]
    for _ in range(2):
        start(app=APP, concurrency=4, processes=2)
    until = time.monotonic() + 150
    for job in ids:
        assert result_of(jobs, job, within=max(1.0, until - time.monotonic())) == list(range(steps))
        names = Counter(step.name for step in db.steps_of(T, job))
        assert names == Counter(f"s{n}" for n in range(steps))
    assert (tmp_path / "kills").stat().st_size >= kills
    # Called again was only what had been killed before it was recorded: one per job in a process that died.
    lost = sum(jobs.kinds(job).count("lost") for job in ids)
    called = sum(len(path.read_text().splitlines()) for path in paths)
    assert lost > 0
    assert called <= len(ids) * steps + lost


def test_a_hundred_waiting_jobs_on_four_slots_stop_nobody(start: Start, jobs: Jobs, db: Store) -> None:
    """A50"""
    waiting = jobs.enqueue_many("waits", "go", {"timeout": 3600}, times=100)
    worker = start(app=APP, concurrency=4)
    eventually(lambda: db.counts(T)[JobState.WAITING] == 100, timeout=40)
    others = jobs.enqueue_many("add", 1, 2, times=20)
    for job in others:
        assert result_of(jobs, job) == 3

    worker.kill_all()
    start("second", app=APP, concurrency=4)
    for number, job in enumerate(waiting[:20]):
        db.signal(T, "go", str(number), "ann", job=job)
    for number, job in enumerate(waiting[:20]):
        assert result_of(jobs, job) == number
    assert db.counts(T)[JobState.WAITING] == 80


@at_a_distance("postgres")
@commit
def test_a_wait_that_nobody_answers_ends_with_its_time(start: Start, jobs: Jobs) -> None:
    """A48, with short times."""
    event = jobs.enqueue("waits", "start", {"timeout": 1.0})
    by_policy = jobs.enqueue("waits", "start", {}, wait_timeout=1.0)
    approval = jobs.enqueue("asks", 1.0)
    agreed = jobs.enqueue("waits", "start", {"timeout": 1.0, "default": "nobody came"})
    start(app=APP)
    for job in (event, by_policy):
        record = jobs.until(job, JobState.FAILED, within=30)
        assert record.error_type == "WaitTimeout"
        assert "'start'" in str(record.error_message)
        assert "1 second" in str(record.error_message)
    record = jobs.until(approval, JobState.FAILED, within=30)
    assert record.error_type == "WaitTimeout"
    assert "'May I?'" in str(record.error_message)
    assert result_of(jobs, agreed) == "nobody came"


@at_a_distance("sqlite")
@commit
def test_an_event_that_came_early_counts_once_and_never_for_the_next_run(start: Start, jobs: Jobs, db: Store) -> None:
    """A49"""
    job = jobs.enqueue("waits", "go", {"timeout": 2.0})
    db.signal(T, "go", '"early"', "ann", job=job)
    db.signal(T, "go", '"second"', "ann", job=job)
    start(app=APP)
    assert result_of(jobs, job) == "early"

    other = jobs.enqueue("waits_in_its_second_run", 1.0)
    db.signal(T, "go", '"for the first run"', "ann", job=other)
    assert jobs.until(other, JobState.FAILED, within=30).error_message == "not in the first run"
    db.resume(T, other, "ann")
    record = eventually(lambda: _ended(jobs, other, run=2), timeout=15)
    assert (record.state, record.error_type) == (JobState.FAILED, "WaitTimeout")


def _ended(jobs: Jobs, job: str, run: int) -> JobRecord:
    record = jobs.get(job)
    assert record.run == run
    assert record.finished_at is not None
    return record


@at_a_distance("sqlite")
def test_over_its_budget_a_job_fails_whatever_its_handler_does(
    start: Start, jobs: Jobs, marks: Marks, db: Store
) -> None:
    """A20"""
    job = jobs.enqueue("spends", marks.path)
    start(app=APP)
    record = jobs.until(job, JobState.FAILED, within=30)
    assert record.error_type == "BudgetExceeded"
    assert "1,200 of 1,000 tokens" in str(record.error_message)
    assert len(marks.of("exceeded")) == 1
    assert db.usage_of(T, job).used == {"tokens": 1200.0}


# Which of two far workers holds a child when somebody looks, and whether it had acknowledged it, is chance.
@only_here
def test_a_tree_on_two_workers_keeps_to_its_budget_although_one_is_killed(
    start: Start, jobs: Jobs, marks: Marks, db: Store
) -> None:
    """A20: thirteen jobs of three levels; what all of them used is the sum of what each did."""
    top = jobs.enqueue("tree", marks.path, 3, 3, budget={"tokens": 300})
    first = start("first", app=APP)
    start("second", app=APP)
    marks.wait_for("spent", 5, within=30)
    eventually(lambda: any(jobs.get(job).worker == "first" for job in _leaves(db, top)), timeout=30)
    first.kill_all()
    jobs.until(top, JobState.COMPLETED, within=60)

    family = _family(db, top)
    ended = {job: jobs.until(job, *FINAL, within=60) for job in family}
    used = {job: db.usage_of(T, job).used.get("tokens", 0.0) for job in family}
    [sum_of_all] = db.usage_of(T, top).trees
    assert len(family) == 13
    # By a server it may have been killed before it had acknowledged what it was offered: that costs nothing.
    assert any({"lost", "given_back"} & set(jobs.kinds(job)) for job in family)
    assert sum_of_all.used["tokens"] == sum(used.values()) > 300
    assert sum(used[job] for job in family if ended[job].state is JobState.COMPLETED) <= 300
    failed = [record for record in ended.values() if record.error_type == "BudgetExceeded"]
    assert failed
    assert all(f"the tree of {top} used" in str(record.error_message) for record in failed)


def _leaves(db: Store, top: str) -> list[str]:
    """Those that take a second: one that only spawns them parks at once, and is lost with nobody."""
    return [leaf.id for branch in db.children_of(T, top) for leaf in db.children_of(T, branch.id)]


def _family(db: Store, top: str) -> list[str]:
    found = [top]
    for job in found:
        found += [child.id for child in db.children_of(T, job)]
    return found


@pytest.mark.parametrize("workflow", ["parks_when_told", "parks_unasked"])
def test_a_cancelled_job_that_parks_is_cancelled(
    start: Start, jobs: Jobs, marks: Marks, db: Store, workflow: str
) -> None:
    """A22: also when the request comes while it unwinds."""
    job = jobs.enqueue(workflow, marks.path)
    start(app=APP)
    marks.wait_for("begun" if workflow == "parks_when_told" else "unwinding")
    db.cancel(T, job, "ann")
    Path(marks.path + ".go").touch()
    record = jobs.until(job, JobState.CANCELLED, within=30)
    assert record.run == 1
    assert "parked" not in jobs.kinds(job)


def test_an_interrupted_job_goes_on_behind_its_finished_steps(
    start: Start, jobs: Jobs, marks: Marks, db: Store
) -> None:
    """A19"""
    job = jobs.enqueue("step_then_nap", marks.path)
    start(app=APP)
    marks.wait_for("napping")
    db.interrupt(T, job, "ann")
    assert jobs.until(job, JobState.PAUSED, within=30).error_message == "Job was interrupted by user"
    db.resume(T, job, "ann")
    jobs.until(job, JobState.COMPLETED, within=30)
    assert len(marks.of("first")) == 1
    assert len(marks.of("napping")) == 2


def test_a_step_that_ends_after_the_request_is_kept(start: Start, jobs: Jobs, marks: Marks, db: Store) -> None:
    """A19: its handler hears of the request when the step is done; whoever resumes it has the result."""
    job = jobs.enqueue("step_while_asked", marks.path, grace=10.0)
    start(app=APP)
    marks.wait_for("slow")
    db.interrupt(T, job, "ann")
    Path(marks.path + ".go").touch()
    jobs.until(job, JobState.PAUSED, within=30)
    assert [step.result for step in db.steps_of(T, job)] == ['"slow"']
    db.resume(T, job, "ann")
    assert result_of(jobs, job) == "slow"
    assert len(marks.of("slow")) == 1


@commit
def test_parents_get_the_results_of_their_children(start: Start, jobs: Jobs, db: Store) -> None:
    plain = jobs.enqueue("parent", [1, 2, 3])
    by_loop = jobs.enqueue("parent_async", [4, 5])
    failing = jobs.enqueue("parent", [1, -1])
    start(app=APP)
    assert result_of(jobs, plain) == [10, 20, 30]
    assert result_of(jobs, by_loop) == [40, 50]
    assert result_of(jobs, failing) == [["FAILED", "negative"]]
    assert len(db.children_of(T, plain)) == 3


def test_children_are_cancelled_with_their_parent(start: Start, jobs: Jobs, marks: Marks, db: Store) -> None:
    job = jobs.enqueue("parent_of_sleepers", marks.path)
    start(app=APP)
    marks.wait_for("sleeper", 3)
    jobs.until(job, JobState.WAITING, within=30)
    db.cancel(T, job, "ann")
    assert jobs.state(job) is JobState.CANCELLED
    children = db.children_of(T, job)
    assert len(children) == 3
    for child in children:
        jobs.until(child.id, JobState.CANCELLED)


def test_a_parked_job_begins_anew_when_its_time_has_come(start: Start, jobs: Jobs, marks: Marks) -> None:
    job = jobs.enqueue("park_a_moment", marks.path)
    start(app=APP)
    assert result_of(jobs, job) == "rested"
    assert len(marks.of("begun")) == 2


@spawn_once
def test_a_short_park_and_a_short_deadline_take_as_long_as_they_say(
    start: Start, jobs: Jobs, marks: Marks, db: Store
) -> None:
    """The sweep is a minute long: the worker that parked the job looks after it when its time has come."""
    start(app=APP, times=SELDOM)
    first = jobs.enqueue("park_a_moment", marks.path)
    assert result_of(jobs, first) == "rested"  # all is up now
    job = jobs.enqueue("rests_and_asks", marks.path)
    assert result_of(jobs, job, within=20) == "silence"
    asked = db.waits_of(T, job)
    took = [(wait.answered_at - wait.asked_at).total_seconds() for wait in asked if wait.answered_at]
    assert [at_least <= seconds < 5 for at_least, seconds in zip((1, 0.3, 0.5), took, strict=True)] == [True] * 3, (
        took
    )


def test_a_park_whose_worker_is_killed_is_ended_by_another_that_knew_of_it(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """The other one looks when it starts, and rests no longer than until the park ends."""
    job = jobs.enqueue("parks_for", marks.path, 10.0)
    first = start("first", app=APP, times=SELDOM)
    jobs.until(job, JobState.WAITING, within=30)
    first.kill_all()
    start("second", app=APP, times=SELDOM)
    assert result_of(jobs, job, within=30) == "rested"
    assert len(marks.of("begun")) == 2


def test_hundreds_of_short_parks_on_two_workers_leave_nobody_behind(start: Start, jobs: Jobs) -> None:
    """A deadline that nobody looks after would be found by a sweep only, a minute later."""
    for _ in range(2):
        start(app=APP, times=SELDOM, concurrency=8)
    ids = jobs.enqueue_many("parks_often", 10, times=40)
    until = time.monotonic() + 40
    for job in ids:
        assert result_of(jobs, job, within=max(1.0, until - time.monotonic())) == 10


@at_a_distance("sqlite")
@only_sqlite
def test_who_gathers_for_an_attempt_that_was_lost_is_told_so(
    start: Start, jobs: Jobs, marks: Marks, store_url: str
) -> None:
    """As whoever records a step; and not how its children ended, nor that the store is away."""
    worker = start(app=APP, times=replace(COMPRESSED, lease=60.0, beat=20.0))
    job = jobs.enqueue("gathers_when_told", marks.path)
    marks.wait_for("spawned", within=30)
    record = worker.record(jobs.store)
    assert record is not None
    running = "SELECT job, token, claim FROM unstuck_running ORDER BY job LIMIT 1"
    ref = AttemptRef(*ask(store_url, running)[0])
    (settled,) = jobs.store.settle(record.number, [Report(ref, Returned('"by another"'))])
    assert settled.verdict is Verdict.DONE
    Path(f"{marks.path}.told").touch()
    marks.wait_for("Cancelled:True")
    assert marks.of("gathered") == []
    assert jobs.get(job).result == '"by another"'
