"""docs/flow.md works as written, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command, ended

GUIDE = (ROOT / "docs" / "flow.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh)\n(.*?)```", GUIDE, re.S)
START, *SHELL = [text for language, text in BLOCKS if language == "sh"]
[CODE] = [text for language, text in BLOCKS if language == "python"]


def environment(unstuck: Command) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return unstuck.environment(PATH=path, PYTHONPATH=f"{ROOT / 'src'}:{unstuck.directory}")


@pytest.fixture
def worker(unstuck: Command) -> Iterator[None]:
    """As the guide starts it, but in the foreground of its own process."""
    (unstuck.directory / "release.py").write_text(CODE)
    line = START.partition("&")[0]
    assert line.startswith("unstuck worker ")
    with (unstuck.directory / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {line}"],
            cwd=unstuck.directory,
            env=environment(unstuck),
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    with ended(process, within=60):
        yield


def run(unstuck: Command, script: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-eu"],
        input=script,
        cwd=unstuck.directory,
        env=environment(unstuck),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("worker")
def test_the_guide_to_flow_works_as_written(unstuck: Command) -> None:
    """A20, A49"""
    approvals, events, children, partials, budgets, again = SHELL
    told = run(unstuck, approvals)
    assert "Deploy shop-1.4.tar?\n" in told
    assert ", of kim, lee" in told
    assert "waiting_approval" in told
    assert "approved by kim: Deploy shop-1.4.tar?" in told
    assert '"shop-1.4.tar is live, said kim"' in told
    assert re.search(r"^build .*#1", told, re.M)
    assert re.search(r"^deploy .*#2", told, re.M)
    assert "is decided already" in told
    assert "too late, says exit code 4" in told

    told = run(unstuck, events)
    assert '"order 7: 12 received"' in told
    assert "woken: event paid, sent by till" in told
    assert "parked: waits for its time, until " in told

    told = run(unstuck, children)
    assert "[2,1]" in told
    assert "├─ COMPLETED  summarize  " in told
    assert "└─ COMPLETED  summarize#2  " in told

    told = run(unstuck, partials)
    assert re.findall(r'Z  #1  chapter (\d)  {"words":\d000}$', told, re.M) == ["1", "2", "3"]
    assert re.search(r'^chapter 3 +#1 .*{"words":3000}$', told, re.M)

    told = run(unstuck, budgets + again)
    assert "over its budget, says exit code 1" in told
    assert "BudgetExceeded: used 1,200 of 1,000 tokens" in told
    assert "jobs.replay" in told


@pytest.mark.usefixtures("worker")
def test_a_rejection_is_heard_by_the_handler_of_the_guide(unstuck: Command) -> None:
    start, rest = SHELL[0].split("unstuck approvals list\n", 1)
    assert "approvals approve" in rest
    told = run(
        unstuck,
        f"{start}unstuck approvals reject \"$JOB\" --by lee --comment 'not on a Friday'\n"
        'unstuck jobs wait "$JOB"\nunstuck jobs steps "$JOB"\nunstuck jobs history "$JOB"\n',
    )
    assert '"not deployed, said lee: not on a Friday"' in told
    assert re.search(r"^remove .*#2", told, re.M)
    assert 'woken: "Deploy shop-1.4.tar?" was rejected by lee: not on a Friday' in told
