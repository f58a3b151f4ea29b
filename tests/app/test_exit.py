"""A program that ends without closing its App ends quietly: nothing is left open, nothing is said twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.command import environment

PROGRAM = """
import os, sys
import unstuck

app = unstuck.App(sys.argv[1])

@app.workflow
def add(a: int) -> int:
    return a

print(add.enqueue(1).id)
sys.stdout.flush()
if os.fork() == 0:
    sys.exit(0)  # runs the exit handlers of its parent, with the parent's own connections in its hands
os.wait()
print(add.enqueue(2).id)
"""


def test_an_app_that_was_never_closed_is_closed_at_exit_and_a_fork_leaves_it_alone(
    store_url: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    finished = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "program.py", store_url],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    assert len(finished.stdout.split()) == 2
