"""Whole stories that once went wrong: each of these left a job, a slot or a worker stuck."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.journeys import mended
from tests.journeys.conftest import Jobs, Marks, only_sqlite
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, ROOT, Worker
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

StartWorker = Callable[..., Worker]


@only_sqlite
def test_a_handler_that_holds_the_interpreter_is_stuck_when_its_grace_is_over(start: StartWorker, db: Store) -> None:
    """Its executor cannot even say that it began: the shared page does."""
    start(app="tests.journeys.mended:app", times=dataclasses.replace(COMPRESSED, frozen=30.0))
    jobs = Jobs(db, mended.app)
    jobs.until(jobs.enqueue("noop"), JobState.COMPLETED)
    job = jobs.enqueue("hold_the_interpreter", timeout=0.5, grace=0.5, retries=0)

    record = jobs.until(job, JobState.FAILED, within=8.0)

    assert record.error_type == "ExecutionStuck"


@only_sqlite
def test_worn_out_executors_with_long_jobs_do_not_multiply(start: StartWorker, jobs: Jobs, marks: Marks) -> None:
    """--concurrency 2 --max-jobs-per-process 1: a long job in each process, a short one that wears it out."""
    worker = start(concurrency=2, max_jobs_per_process=1)
    for _ in range(8):
        jobs.enqueue("nap", marks.path, 60.0)
        jobs.enqueue("noop")

    marks.wait_for("begun", 2)
    most = max(_count_for(3.0, lambda: len(worker.executors(jobs.store))))
    assert most <= 3  # one, and two that drain
    assert len(marks.of("begun")) == 2


def _count_for(seconds: float, count: Callable[[], int]) -> list[int]:
    counts: list[int] = []

    def looked() -> bool:
        counts.append(count())
        return len(counts) >= seconds / 0.1

    eventually(looked, timeout=10 * seconds, every=0.1)
    return counts


@only_sqlite
def test_suspects_run_at_once_each_by_itself_and_no_more_than_there_are_slots(
    start: StartWorker, jobs: Jobs, marks: Marks, store_url: str
) -> None:
    ids = jobs.enqueue_many("nap", marks.path, 60.0, times=12, timeout="unlimited")
    _make_suspects(store_url)
    start(concurrency=4)

    pids = {pid for pid, _ in marks.wait_for("begun", 4)}

    assert len(pids) == 4
    running = _count_for(1.5, lambda: sum(jobs.state(job) is JobState.RUNNING for job in ids))
    assert set(running) == {4}
    assert len(marks.of("begun")) == 4
    assert all(jobs.kinds(job).count("claimed") <= 1 for job in ids)


def _make_suspects(url: str) -> None:
    import sqlite3

    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        database.execute("UPDATE unstuck_jobs SET alone = 1")
    database.close()


_WAITS = """
import sys
from unstuck.assembly.worker import WorkerOptions, build_worker
sys.exit(build_worker(WorkerOptions("tests.journeys.apps:app", "postgresql://127.0.0.1:1/none")).run())
"""


def test_a_worker_that_waits_for_its_database_leaves_when_it_is_asked_to(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", "import logging; logging.basicConfig(level=logging.INFO)\n" + _WAITS],
            cwd=ROOT,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
    try:
        eventually(lambda: log.read_text().count("cannot_register") >= 2, timeout=20.0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


@only_sqlite
def test_the_slots_of_all_processes_together_are_the_concurrency(
    start: StartWorker, jobs: Jobs, marks: Marks, db: Store
) -> None:
    """--concurrency 5 --processes 3"""
    start(concurrency=5, processes=3)
    jobs.enqueue_many("nap", marks.path, 60.0, times=12)
    marks.wait_for("begun", 5)

    assert set(_count_for(1.5, lambda: len(marks.of("begun")))) == {5}
    # It says so with its next beat.
    eventually(lambda: sorted(e["running"] for w in db.workers() for e in w.info["executors"]) == [1, 2, 2])
