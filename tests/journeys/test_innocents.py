"""Whole stories of jobs that were convicted, doubled or lost for what others did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.journeys import innocents
from tests.journeys.conftest import Jobs, Marks
from tests.journeys.ladder import is_alive
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer
from tests.support.workers import COMPRESSED, ROOT, Worker
from unstuck.assembly.store import open_store
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

Start = Callable[..., Worker]
on_sqlite_in_both_modes = pytest.mark.parametrize(
    ("mode", "store_url"), [("fork", "sqlite"), ("spawn", "sqlite")], indirect=["store_url"]
)
APP = "tests.journeys.innocents:app"


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, innocents.app)


@on_sqlite_in_both_modes
def test_a_job_that_kills_the_zygote_ends_and_nobody_else_does(start: Start, jobs: Jobs, marks: Marks) -> None:
    """A12: five innocents fall with it; run one at a time, its next falls are its own."""
    start(app=APP, concurrency=6, processes=2)
    jobs.until(jobs.enqueue("noop"), JobState.COMPLETED)
    ids = [
        *jobs.enqueue_many("naps", marks.path, 3.0, times=2),
        *jobs.enqueue_many("naps_async", marks.path, 3.0, times=2),
        jobs.enqueue("naps_by_itself", marks.path, 3.0),
    ]
    marks.wait_for("begun", 5)
    killer = jobs.enqueue("kills_the_zygote", marks.path)

    ended = jobs.until(killer, JobState.FAILED, within=60)

    assert (ended.error_type, len(marks.of("killer"))) == ("ProcessDied", 1 + 1 + ended.policy.suspect_runs)
    for job in ids:
        assert jobs.until(job, JobState.COMPLETED, within=40).losses == 0


@on_sqlite_in_both_modes
def test_a_killed_zygote_is_not_a_failed_import(start: Start, jobs: Jobs, marks: Marks) -> None:
    worker = start(app=APP)
    job = jobs.enqueue("naps", marks.path, 2.0)
    marks.wait_for("begun")
    os.kill(_zygote(worker, jobs.store), signal.SIGKILL)

    jobs.until(job, JobState.COMPLETED, within=20)

    assert (jobs.get(job).losses, jobs.get(job).suspects) == (0, 0)
    log = worker.log.read_text()
    assert "zygote_died" in log
    assert "import_failed" not in log


@on_sqlite_in_both_modes
@pytest.mark.parametrize("body", ["lives", "lives_async"])
def test_worker_and_zygote_stopped_past_the_lease_never_make_two_bodies(
    start: Start, jobs: Jobs, marks: Marks, body: str
) -> None:
    """A7, F06: nobody is awake to end the first body but its own executor."""
    first = start("first", app=APP)
    job = jobs.enqueue(body, marks.path, 30.0, timeout=60)
    (old, _) = marks.wait_for("alive")[0]
    start("second", app=APP)
    eventually(lambda: len(jobs.store.workers()) == 2, timeout=15)
    with _stopped(first.process.pid, _zygote(first, jobs.store)):
        eventually(lambda: any(pid != old for pid, _ in marks.of("alive")), timeout=25)
        began = min(at for pid, at in marks.of("alive") if pid != old)
        assert not is_alive(old)
    assert max(at for pid, at in marks.of("alive") if pid == old) < began
    assert jobs.get(job).worker == "second"
    eventually(lambda: "begins_anew" in first.log.read_text(), timeout=15)


@pytest.mark.parametrize(("mode", "store_url"), [("spawn", "sqlite")], indirect=["store_url"])
def test_a_job_whose_process_takes_longer_to_import_than_its_limit_is_not_stuck(
    start: Start, db: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """11b counts from the start of the handler; this one begins long after the backstop would have looked."""
    from tests.journeys import slow_import

    times = replace(COMPRESSED, lease=4.5, beat=0.9, store_call=0.8, margin=1.2, kill_grace=0.3, slack=0.3)
    assert times.problems() == []
    monkeypatch.setenv("TEST_SLOW_FROM_NOW", str(tmp_path / "slow"))
    start(app="tests.journeys.slow_import:app", times=times)
    slow = Jobs(db, slow_import.app)
    eventually(
        lambda: [w for w in db.workers() if any(e["state"] == "active" for e in w.info.get("executors", ()))], 20
    )
    (tmp_path / "slow").touch()
    job = slow.enqueue("touches", str(tmp_path / "touched"))

    record = slow.until(job, JobState.COMPLETED, within=30)

    assert record.result == '"touched"'


def test_a_worker_that_is_started_before_its_database_waits_for_it_and_makes_its_tables(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = postgres_server.create(migrated=False)
    postgres_server.drop(url)
    with _on_the_command_line(url, tmp_path) as worker:
        eventually(lambda: worker.log.read_text().count("cannot_register") >= 2, timeout=20)
        name = conninfo_to_dict(url)["dbname"]
        postgres_server.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        _serves_and_leaves(worker, url)
    postgres_server.drop(url)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_worker_that_is_started_while_its_database_is_busy_waits(store_url: str, tmp_path: Path) -> None:
    with psycopg.connect(store_url) as person:
        person.execute("LOCK TABLE unstuck_migrations IN ACCESS EXCLUSIVE MODE")
        with _on_the_command_line(store_url, tmp_path) as worker:
            eventually(lambda: "cannot_register" in worker.log.read_text(), timeout=30)
            person.rollback()
            _serves_and_leaves(worker, store_url)


@contextmanager
def _on_the_command_line(url: str, folder: Path) -> Iterator[Worker]:
    log = folder / "cli.log"
    command = [sys.executable, "-m", "unstuck", "worker", "tests.journeys.innocents:app", "-d", url]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--log-format", "json"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
    try:
        yield Worker("cli", process, log)
    finally:
        process.kill()
        process.wait()
        print(log.read_text()[-3000:])


def _serves_and_leaves(worker: Worker, url: str) -> None:
    store = open_store(url, COMPRESSED)
    try:
        eventually(lambda: "worker_started" in worker.log.read_text(), timeout=20)
        jobs = Jobs(store, innocents.app)
        jobs.until(jobs.enqueue("noop"), JobState.COMPLETED)
        worker.terminate()
        assert worker.wait(15) == 0
    finally:
        store.close()


@contextmanager
def _stopped(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _zygote(worker: Worker, store: Store) -> int:
    def found() -> int:
        record = worker.record(store)
        assert record is not None
        pids = record.info.get("pids", {})
        assert "zygote" in pids, "its first beats may have come before it"
        return int(pids["zygote"]["pid"])

    return eventually(found)
