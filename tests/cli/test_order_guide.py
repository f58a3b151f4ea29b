"""docs/order.md works as written, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.eventually import eventually

GUIDE = (ROOT / "docs" / "order.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh)\n(.*?)```", GUIDE, re.S)
SHELL = [text for language, text in BLOCKS if language == "sh"]
CODE = [text for language, text in BLOCKS if language == "python"]


@pytest.fixture
def worker(unstuck: Command) -> Iterator[Command]:
    """The guide's own app, and a worker of it."""
    for text in CODE:
        name = text.split("\n", 1)[0].removeprefix("# ")
        (unstuck.directory / name).write_text(text)
    process = subprocess.Popen(
        unstuck.words("worker", "depot:app", "--processes", "1", "--drain", "5s", "--name", "w1"),
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: "fetch" in unstuck("workflows").out, timeout=30, every=0.2)
        yield unstuck
    finally:
        process.terminate()
        process.wait(30)


def shell_of(unstuck: Command) -> dict[str, str]:
    """As a reader has it: `unstuck` on the PATH, the app in the current folder."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return unstuck.environment(PATH=path, PYTHONPATH=f"{ROOT / 'src'}:{unstuck.directory}")


def run(unstuck: Command, script: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-eu"],
        input=script,
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_the_guide_to_order_works_as_written(worker: Command) -> None:
    started, targets, pauses, limits, tenants, holds = SHELL
    assert started.startswith("unstuck worker depot:app")

    told = run(worker, targets)
    assert "it failed" in told
    assert "not runnable: target ada is blocked by FAILED job" in told
    assert '"ada has the piano"' in told

    told = run(worker, pauses)
    assert "vendor outage" in told
    assert "queue io goes on" in told
    assert '"example.org"' in told

    told = run(worker, limits)
    assert "5 at once, 20 starts per second, at most 10,000 waiting" in told
    assert "set by" not in told
    assert "queue io: no limit any more" in told

    told = run(worker, tenants)
    assert "tenant acme has weight 3" in told

    told = run(worker, holds)
    assert "not runnable" in told

    told = run(worker, f"{sys.executable} night_shift.py")
    assert "not runnable" in told
    assert told.splitlines()[-1] == "example.org"
