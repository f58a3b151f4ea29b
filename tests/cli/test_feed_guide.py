"""docs/feed.md works as written, on both databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.command import ROOT, Command

GUIDE = (ROOT / "docs" / "feed.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh)\n(.*?)```", GUIDE, re.S)
SHELL = [text for language, text in BLOCKS if language == "sh"]
[CODE] = [text for language, text in BLOCKS if language == "python"]


def run(unstuck: Command, *words: str, script: str = "") -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        words or ["/bin/sh", "-eu"],
        input=script,
        cwd=unstuck.directory,
        env=unstuck.environment(PATH=path, PYTHONPATH=f"{ROOT / 'src'}:{unstuck.directory}"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_guide_to_the_feed_works_as_written(unstuck: Command) -> None:
    (unstuck.directory / "hello.py").write_text(CODE)
    events, logs = SHELL
    told = run(unstuck, script=events)
    assert "greet  submitted" in told
    assert '"kind": "submitted"' in told
    catch_up = (sys.executable, "-c", "import hello; print(hello.catch_up())")
    assert run(unstuck, *catch_up) == "['greet submitted']\n"
    assert "it has printed nothing so far" in run(unstuck, script=logs)
    assert run(unstuck, *catch_up) == "['greet submitted']\n"
    assert run(unstuck, *catch_up) == "[]\n"
