"""docs/feed.md works as written, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command, ended

GUIDE = (ROOT / "docs" / "feed.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh)\n(.*?)```", GUIDE, re.S)
SHELL = [text for language, text in BLOCKS if language == "sh"]
HELLO, NEWS, SHOP = [text for language, text in BLOCKS if language == "python"]


def environment(unstuck: Command) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return unstuck.environment(PATH=path, PYTHONPATH=f"{ROOT / 'src'}:{unstuck.directory}")


def run(unstuck: Command, *words: str, script: str = "") -> str:
    done = subprocess.run(
        words or ["/bin/sh", "-eu"],
        input=script,
        cwd=unstuck.directory,
        env=environment(unstuck),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_guide_to_the_feed_works_as_written(unstuck: Command) -> None:
    (unstuck.directory / "hello.py").write_text(HELLO)
    events, *_ = SHELL
    told = run(unstuck, script=events)
    assert "greet  submitted" in told
    assert '"kind": "submitted"' in told
    catch_up = (sys.executable, "-c", "import hello; print(hello.catch_up())")
    assert run(unstuck, *catch_up) == "['greet submitted']\n"
    again = 'unstuck jobs logs "$(unstuck enqueue greet --app hello:app grace)"'
    assert "it has printed nothing so far" in run(unstuck, script=again)
    assert run(unstuck, *catch_up) == "['greet submitted']\n"
    assert run(unstuck, *catch_up) == "[]\n"


def test_news_and_what_is_published_are_as_the_guide_shows(unstuck: Command) -> None:
    _, pauses, publish, *_ = SHELL
    assert "a pause begins" in run(unstuck, script=pauses)
    assert "order 7" in run(unstuck, script=publish)
    (unstuck.directory / "news.py").write_text(NEWS)
    with working(unstuck, "unstuck worker news:app"):
        script = (
            'unstuck jobs wait "$(unstuck enqueue build 7 --app news:app)"\nunstuck events list --topic project:7'
        )
        assert "build.begun (project 7)" in run(unstuck, script=script)
    joined = run(unstuck, script="unstuck events list --all-tenants --kind worker.joined --kind worker.left")
    assert joined.index("joined") < joined.index("left")


@pytest.fixture
def worker(unstuck: Command) -> Iterator[None]:
    (unstuck.directory / "shop.py").write_text(SHOP)
    line = SHELL[3].partition("&")[0]
    assert line.startswith("unstuck worker ")
    with working(unstuck, line):
        yield


@contextmanager
def working(unstuck: Command, line: str) -> Iterator[None]:
    """As the guide starts it, but in the foreground of its own process."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {line}"],
        cwd=unstuck.directory,
        env=environment(unstuck),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with ended(process, within=60):
        yield


def test_what_a_job_says_is_what_the_guide_shows(unstuck: Command, worker: None) -> None:
    *_, shown = re.findall(r"```text\n(.*?)```", GUIDE, re.S)
    told = run(unstuck, script=SHELL[4])
    assert told.startswith(shown)
    assert "--- attempt #1 on " in told.removeprefix(shown)
