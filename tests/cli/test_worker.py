"""unstuck worker and the commands that need one: real processes, both databases."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import APP, Command
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.tiers import commit_on_sqlite

Worker = subprocess.Popen[bytes]


def running(unstuck: Command, job: str) -> None:
    eventually(lambda: unstuck("jobs", "show", job, "--json").object["state"] == "RUNNING", timeout=30)


@commit_on_sqlite
def test_enqueue_and_wait_prints_the_result(unstuck: Command, worker: Worker) -> None:
    answer = unstuck("enqueue", "add", "2", "b=3", "--app", APP, "--wait", "--timeout", "30s")
    assert (answer.code, answer.word) == (0, "5"), answer.err
    # The worker has registered its workflows by now: the row is enough, no code is needed.
    by_row = unstuck("enqueue", "add", "20", "--wait", "--timeout", "30s", "--json")
    assert (by_row.code, by_row.object["result"]) == (0, 21), by_row.err
    assert unstuck("enqueue", "add", "many").code == 2
    assert unstuck("enqueue", "subtract").code == 3
    job = by_row.object["id"]
    assert unstuck("jobs", "logs", job).word == "adding 20 and 1"
    shown = unstuck("jobs", "show", job, "--json").object
    assert [event["kind"] for event in shown["history"]] == ["submitted", "claimed", "completed"]
    assert "adding 20 and 1" in unstuck("jobs", "show", job).out
    [row] = unstuck("workflows", "add", "--json").lines
    assert row["name"] == "add"
    assert "Adds two numbers." in unstuck("workflows").out


@commit_on_sqlite
def test_the_log_for_machines_tells_of_claims_beats_and_cancels(
    unstuck: Command, worker: Worker, tmp_path: Path
) -> None:
    job = unstuck.enqueue("last", "50")
    running(unstuck, job)
    unstuck("jobs", "cancel", job, "--reason", "changed my mind")

    def told(event: str) -> list[dict[str, Any]]:
        lines = whole_lines(tmp_path / "worker.log")
        return [said for line in lines if (said := json.loads(line))["event"] == event]

    eventually(lambda: told("cancellation_requested"), timeout=30)
    [took] = told("acquired")
    assert (took["worker"], took["jobs"], took["job"], took["workflow"]) == ("w1", 1, job, "last")
    [asked] = told("cancellation_requested")
    assert (asked["job"], asked["kind"], asked["reason"]) == (job, "cancel", "changed my mind")
    assert eventually(lambda: told("beat"), timeout=30)[0]["lease"] == 30.0


def test_a_failed_job_is_code_1_and_its_error_is_shown(unstuck: Command, worker: Worker) -> None:
    answer = unstuck("enqueue", "refuse", "out of stock", "--app", APP, "--wait", "--timeout", "30s")
    assert (answer.code, answer.out) == (1, "")
    assert "ValueError: out of stock" in answer.err
    job = answer.err.split()[1]
    assert "ValueError" in unstuck("jobs", "show", job).out
    listed = unstuck("jobs", "list", "--error-type", "ValueError", "--json").object
    assert (listed["id"], listed["state"]) == (job, "FAILED")


def test_a_running_job_is_cancelled_from_another_process(unstuck: Command, worker: Worker) -> None:
    """A17: seen from the command line."""
    job = unstuck.enqueue("last", "50")
    running(unstuck, job)
    assert unstuck("jobs", "cancel", job).code == 0
    assert unstuck("jobs", "wait", job, "--timeout", "20s").code == 8


def test_logs_follow_until_the_job_ends(unstuck: Command, worker: Worker) -> None:
    answer = unstuck("jobs", "logs", "--follow", unstuck.enqueue("last", "1.5"))
    assert answer.code == 0
    assert answer.word == "it has begun"


def test_workers_and_health_show_a_living_worker_and_its_processes(unstuck: Command, worker: Worker) -> None:
    eventually(lambda: unstuck("health").code == 0, timeout=30)
    [seen] = unstuck("workers", "--json").lines
    assert (seen["name"], seen["state"], seen["pid"]) == ("w1", "active", worker.pid)
    eventually(lambda: "process" in unstuck("workers").out, timeout=15)
    for_people = unstuck("workers").out
    assert f"pid {worker.pid}" in for_people


@commit_on_sqlite
def test_term_drains_and_ends_with_0(unstuck: Command, worker: Worker, tmp_path: Path) -> None:
    """A53: the job that runs may finish, one that comes later stays QUEUED."""
    first = unstuck.enqueue("last_until", str(tmp_path / "end"))
    running(unstuck, first)
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: "draining" in unstuck("workers", "--json").out, timeout=30)
    later = unstuck.enqueue("last", "1")
    (tmp_path / "end").touch()
    assert worker.wait(30) == 0
    assert unstuck("jobs", "show", first, "--json").object["state"] == "COMPLETED"
    assert unstuck("jobs", "show", later, "--json").object["state"] == "QUEUED"
    assert unstuck("workers", "--json").out == ""


def test_an_app_that_cannot_be_imported_is_shown_with_its_traceback(unstuck: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_thing\n")
    process = subprocess.Popen(
        unstuck.words("worker", "broken:app", "--drain", "1s"),
        cwd=tmp_path,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: "no_such_thing" in unstuck("workers").out, timeout=30)
        assert unstuck("health").code == 10
    finally:
        process.terminate()
        process.wait(20)


def test_a_worker_whose_starter_dies_ends_too(unstuck: Command, tmp_path: Path) -> None:
    process = subprocess.Popen(
        unstuck.words("worker", APP, "--stop-with-stdin", "--drain", "1s"),
        cwd=tmp_path,
        env=unstuck.environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: unstuck("workers", "--json").out != "", timeout=30)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture
def mute(unstuck: Command, request: pytest.FixtureRequest) -> Iterator[Worker]:
    """A worker whose log nobody takes: its pipe is full, or has no reader any more."""
    reading, writing = os.pipe()
    if request.param == "full":
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writing, b"x" * 65536):
                pass
        os.set_blocking(writing, True)
    else:
        os.close(reading)
    process = subprocess.Popen(
        unstuck.words("worker", APP, "--concurrency", "2", "--processes", "1", "--drain", "91s", "--name", "mute"),
        cwd=unstuck.directory,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=writing,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
        os.close(writing)
        if request.param == "full":
            os.close(reading)


@pytest.mark.parametrize("mute", ["full", "closed"], indirect=True)
def test_a_worker_that_cannot_log_works_and_drains_all_the_same(unstuck: Command, mute: Worker) -> None:
    answer = unstuck("enqueue", "add", "2", "--app", APP, "--wait", "--timeout", "30s")
    assert (answer.code, answer.word) == (0, "3"), answer.err
    mute.send_signal(signal.SIGTERM)
    assert mute.wait(30) == 0


def test_an_app_that_does_not_exist_is_told_at_once_and_each_time_it_is_tried(unstuck: Command) -> None:
    log = unstuck.directory / "nope.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            unstuck.words("worker", "nope:app", "--name", "lost", "--log-format", "human"),
            cwd=unstuck.directory,
            env=unstuck.environment(),
            stdin=subprocess.DEVNULL,
            stderr=sink,
        )
    try:
        told = "the app cannot be imported (next try in {} s): ModuleNotFoundError: No module named 'nope'"
        eventually(lambda: told.format(2) in log.read_text(), timeout=30)
        assert told.format(1) in log.read_text()
        assert "Traceback" not in log.read_text()
        eventually(lambda: "its app cannot be imported" in unstuck("workers").out, timeout=15, every=0.5)
        assert "    ModuleNotFoundError: No module named 'nope'" in unstuck("workers").out
        assert "Traceback" not in unstuck("workers").out
    finally:
        process.terminate()
        assert process.wait(30) == 0


def test_the_ready_file_exists_exactly_while_the_worker_takes_jobs(unstuck: Command, tmp_path: Path) -> None:
    """A53: readiness flips with the drain, before the running job has ended."""
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        unstuck.words("worker", APP, "--ready-file", str(ready), "--memory-limit", "4G", "--name", "w1"),
        cwd=tmp_path,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(ready.exists, timeout=30)
        job = unstuck.enqueue("last_until", str(tmp_path / "end"))
        running(unstuck, job)
        process.terminate()
        eventually(lambda: not ready.exists(), timeout=10)
        assert process.poll() is None, "it still drains"
        (tmp_path / "end").touch()
        assert process.wait(30) == 0
        assert unstuck("jobs", "show", job, "--json").object["state"] == "COMPLETED"
    finally:
        process.kill()
        process.wait(10)
