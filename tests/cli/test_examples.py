"""The examples do what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command


@contextmanager
def worker_of(app: str, command: Command) -> Iterator[None]:
    process = subprocess.Popen(
        command.words("worker", app, "--processes", "1", "--drain", "2s"),
        cwd=command.directory,
        env=command.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def here(tmp_path: Path) -> Command:
    return Command(f"sqlite:///{tmp_path / 'unstuck.db'}", tmp_path)


def test_quickstart_greets_the_world(here: Command) -> None:
    with worker_of("examples.quickstart:app", here):
        finished = subprocess.run(
            [sys.executable, "-m", "examples.quickstart"],
            cwd=here.directory,
            env=here.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert finished.stdout.splitlines()[-1] == "Hello, world!"


def test_resources_are_opened_in_each_process_and_middleware_is_heard(here: Command) -> None:
    app = "examples.resources:app"
    with worker_of(app, here):
        found = here("enqueue", "lookup", "answer", "--app", app, "--wait", "--timeout", "30s", "--json")
        assert (found.code, found.object["result"]) == (0, 42), found.err
        told = here("jobs", "logs", found.object["id"]).out
        assert "attempt 1 of lookup begins" in told
        assert here("enqueue", "lookup", "nonsense", "--app", app, "--wait", "--timeout", "30s").code == 1


def test_a_file_is_an_app_too(here: Command) -> None:
    answer = here("enqueue", "crawl", "3", "--app", f"{ROOT / 'examples' / 'stoppable.py'}:app")
    assert answer.code == 0, answer.err
