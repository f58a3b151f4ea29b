"""Deploys, orphans and dependants while everything happens at once; real workers, both databases."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journeys import deploy_apps
from tests.journeys.conftest import Jobs, Marks
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker, workers
from unstuck.chance import SystemChance
from unstuck.model.errors import UnstuckError
from unstuck.model.job import NewJob
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.model.policy import Policy
from unstuck.store.port import Store

Start = Callable[..., Worker]
APP = "tests.journeys.deploy_apps"
chance = SystemChance()


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


@pytest.fixture
def start_gated(store_url: str, gate: Path, tmp_path: Path) -> Iterator[Start]:
    with workers(store_url, tmp_path, UNSTUCK_DATABASE=store_url, DEPLOY_GATE=str(gate)) as starter:
        yield starter


def test_a_worker_whose_first_import_failed_says_which_code_it_runs_a59(
    start_gated: Start, db: Store, gate: Path
) -> None:
    """Its row was written before it knew its version; attempts and `note_known` look there."""
    worker = start_gated("late", app=f"{APP}:late")
    eventually(lambda: "import_error" in _info(worker, db), timeout=40)
    gate.write_text("here")
    jobs = Jobs(db, deploy_apps.late)
    job = jobs.enqueue("late")
    jobs.until(job, JobState.COMPLETED, within=40)
    assert [attempt.code_version for attempt in db.attempts("default", job)] == ["v9"]


def _info(worker: Worker, db: Store) -> dict[str, object]:
    record = worker.record(db)
    assert record is not None
    return dict(record.info)


def test_a_worker_that_comes_at_the_last_moment_and_two_janitors_decide_each_orphan_once_a47(
    start: Start, db: Store, marks: Marks
) -> None:
    times = replace(COMPRESSED, orphan_after=2.0)
    jobs = Jobs(db, deploy_apps.new)
    for name in ("one", "two"):
        start(name, app=f"{APP}:old", times=times, queues=("a", "b"))
    eventually(lambda: len([w for w in db.workers() if w.serves]) == 2, timeout=30)
    ids = [*jobs.enqueue_many("added", marks.path, times=50)]
    ids += _targeted(db, marks, 25)
    start("new", app=f"{APP}:new", times=times, queues=("a", "b"))
    eventually(lambda: all(jobs.state(job) in FINAL for job in ids), timeout=60, every=0.2)
    for job in ids:
        record, kinds = jobs.get(job), jobs.kinds(job)
        if record.state is JobState.FAILED:
            assert record.error_type == "UnknownWorkflow", record
            assert kinds == ["submitted", "failed"], kinds
        else:
            assert kinds == ["submitted", "claimed", "completed"], kinds
    completed = [job for job in ids if jobs.state(job) is JobState.COMPLETED]
    assert len(marks.of("added")) == len(completed)
    eventually(lambda: any("added" in w.serves.get("workflows", ()) for w in db.workers()), timeout=30)
    more = jobs.enqueue_many("added", marks.path, times=5)
    for job in more:
        jobs.until(job, JobState.COMPLETED)


def _targeted(db: Store, marks: Marks, count: int) -> list[str]:
    new = [_new("added", {"args": [marks.path], "kwargs": {}}, queue="b", target=f"t{n % 7}") for n in range(count)]
    return [answer.id for answer in db.submit(new)]


def _new(workflow: str, payload: object, **more: object) -> NewJob:
    options: dict[str, object] = {"tenant": "default", "queue": "default", "policy": Policy(retries=0), **more}
    return NewJob(id=chance.job_id(), workflow=workflow, payload=json.dumps(payload), **options)  # type: ignore[arg-type]


def test_a_rolling_deploy_that_moves_a_queue_and_renames_a_target_buries_nothing_a59(
    start: Start, db: Store, marks: Marks
) -> None:
    times = replace(COMPRESSED, orphan_after=120.0)
    every = ("a", "b")
    first = start("old-1", app=f"{APP}:old", times=times, queues=every)
    second = start("old-2", app=f"{APP}:old", times=times, queues=every)
    ids: list[str] = []

    def submit(workflow: str, queue: str, count: int, template: str | None = None) -> None:
        for number in range(count):
            repo = f"r{number % 4}"
            payload = {"args": [marks.path, repo] if workflow == "build" else [marks.path], "kwargs": {}}
            target = template.format(repo=repo) if template else None
            ids.extend(a.id for a in db.submit([_new(workflow, payload, queue=queue, target=target)]))

    submit("build", "a", 12, "{repo}")
    submit("dropped", "a", 4)
    first.terminate()
    start("new-1", app=f"{APP}:new", times=times, queues=every)
    submit("build", "b", 12, "repo-{repo}")
    submit("build", "a", 8, "{repo}")
    submit("added", "b", 4)
    second.kill_all()
    start("new-2", app=f"{APP}:new", times=times, queues=every)
    start("old-3", app=f"{APP}:old", times=times, queues=every)  # somebody restarted it in the middle of the deploy
    submit("dropped", "a", 5)
    submit("build", "b", 10, "repo-{repo}")
    jobs = Jobs(db, deploy_apps.new)
    eventually(lambda: all(jobs.state(job) in FINAL for job in ids), timeout=90, every=0.3)
    assert {jobs.state(job) for job in ids} == {JobState.COMPLETED}
    versions = {
        (jobs.get(job).workflow, attempt.code_version) for job in ids for attempt in db.attempts("default", job)
    }
    assert versions <= {("build", "v1"), ("build", "v2"), ("dropped", "v1"), ("added", "v2")}, versions


def test_dependants_of_jobs_that_are_retried_resumed_and_cancelled_at_once_all_come_to_an_end(
    start: Start, db: Store
) -> None:
    """Three levels, half of them with after_failure="run", and four people who press everything."""
    levels: list[list[NewJob]] = []
    for level in range(3):
        above = [job.id for job in levels[-1]] if levels else []
        levels.append(
            [
                _new(
                    "link",
                    {"args": [0.01, 0.3 if level < 2 else 0.0], "kwargs": {}},
                    policy=Policy(retries=1, backoff_base=0.05),
                    after=tuple(random.sample(above, 3)) if above else (),
                    after_failure=random.choice(["fail", "run"]),
                    target=f"t{number % 5}" if number % 3 == 0 else None,
                )
                for number in range(20)
            ]
        )
    for name in ("one", "two"):
        start(name, app=f"{APP}:chain")
    for level_jobs in levels:
        db.submit(level_jobs)
    everybody = [job.id for jobs in levels for job in jobs]
    problems: list[BaseException] = []

    def press(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(60):
            verb = dice.choice(["cancel", "resume", "resume", "interrupt", "run_now", "skip", "release", "resume"])
            try:
                getattr(db, verb)("default", dice.choice(everybody), "me")
            except UnstuckError:
                pass
            except BaseException as error:
                problems.append(error)
                raise

    people = [threading.Thread(target=press, args=(seed,)) for seed in range(4)]
    for person in people:
        person.start()
    for person in people:
        person.join(60)
    assert not problems
    jobs = Jobs(db, deploy_apps.chain)

    def at_rest() -> bool:
        """What is PAUSED waits for a person, and what comes behind it waits for that; everything else must end."""
        for job in everybody:
            if jobs.state(job) is JobState.PAUSED or jobs.get(job).is_blocker:
                try:
                    db.cancel("default", job, "me") if jobs.state(job) is JobState.PAUSED else db.skip(
                        "default", job, "me"
                    )
                except UnstuckError:
                    pass
        return all(jobs.state(job) in FINAL for job in everybody)

    eventually(at_rest, timeout=60, every=0.5)
    by_id = {job.id: job for level in levels for job in level}
    for job in everybody:
        record = jobs.get(job)
        if record.error_type == "DependencyFailed":
            assert by_id[job].after_failure == "fail"
            assert by_id[job].after
