"""Apps that cannot be imported, that hang, whose hooks fail: the worker says so, goes on trying, and recovers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command
from tests.support.eventually import eventually

APP = """
import unstuck
app = unstuck.App()

@app.workflow
def add(a: int, b: int) -> int:
    return a + b
"""

#: What a worker says about itself goes with its beats.
QUICK_BEATS = ("--set", "beat=1s", "--set", "store_call=900ms")
only_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)


@contextmanager
def working(unstuck: Command, *words: str, **variables: str) -> Iterator[Path]:
    """A worker of mine.py; gives its log."""
    log = unstuck.directory / "worker.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            unstuck.words("worker", "mine:app", "--drain", "2s", *QUICK_BEATS, *words),
            cwd=unstuck.directory,
            env=unstuck.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    try:
        yield log
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(10)
        print(log.read_text()[-4000:])


def shown(unstuck: Command) -> dict[str, Any]:
    """What `unstuck workers --json` says about the one worker; nothing before it has registered."""
    return next((worker["info"] for worker in unstuck("workers", "--json").lines), {})


def complaint(unstuck: Command, kind: str) -> str:
    return str(shown(unstuck).get(kind, ""))


def runs(unstuck: Command) -> None:
    answer = unstuck("enqueue", "add", "2", "3", "--app", "mine:app", "--wait", "--timeout", "30s")
    assert (answer.code, answer.word) == (0, "5"), answer.err


@pytest.mark.parametrize("fork", ["on", "off"])
@only_sqlite
def test_an_app_that_is_repaired_while_its_worker_runs_is_imported_by_itself(unstuck: Command, fork: str) -> None:
    mine = unstuck.directory / "mine.py"
    mine.write_text("import no_such_thing\n")
    with working(unstuck, UNSTUCK_FORK=fork):
        eventually(lambda: "No module named 'no_such_thing'" in complaint(unstuck, "import_error"), timeout=30)
        mine.write_text(APP)
        runs(unstuck)
        eventually(lambda: not complaint(unstuck, "import_error"), timeout=15)
        assert shown(unstuck)["workflows"] == ["add"]


@only_sqlite
def test_an_import_that_hangs_is_ended_at_its_limit_and_tried_again(unstuck: Command) -> None:
    mine = unstuck.directory / "mine.py"
    mine.write_text("import time\ntime.sleep(600)\n")
    with working(unstuck, "--set", "import_limit=2s"):
        eventually(lambda: "took longer than 2 s" in complaint(unstuck, "import_error"), timeout=30)
        mine.write_text(APP)
        runs(unstuck)
        eventually(lambda: not complaint(unstuck, "import_error"), timeout=15)


@pytest.mark.parametrize("fork", ["on", "off"])
@only_sqlite
def test_an_executor_whose_start_hook_fails_is_tried_again_and_says_why(unstuck: Command, fork: str) -> None:
    """Meanwhile its jobs stay QUEUED: nothing claims what nothing could run."""
    hook = """
import os
@app.on_executor_start
def connect():
    if not os.path.exists("there"):
        raise RuntimeError("the other side is not there yet")
"""
    (unstuck.directory / "mine.py").write_text(APP + hook)
    with working(unstuck, UNSTUCK_FORK=fork):
        job = unstuck("enqueue", "add", "1", "1", "--app", "mine:app").word
        eventually(lambda: "the other side is not there yet" in complaint(unstuck, "start_error"), timeout=30)
        assert "the other side is not there yet" in unstuck("workers").out
        assert unstuck("health").code == 10
        seen = unstuck("jobs", "show", job, "--json").object
        assert [event["kind"] for event in seen["history"]] == ["submitted"]

        (unstuck.directory / "there").touch()
        assert unstuck("jobs", "wait", job, "--timeout", "30s").code == 0
        eventually(lambda: not complaint(unstuck, "start_error"), timeout=15)


@only_sqlite
def test_an_app_that_imports_numpy_still_forks(unstuck: Command) -> None:
    (unstuck.directory / "mine.py").write_text(
        "import numpy\nnumpy.ones((300, 300)) @ numpy.ones((300, 300))\n" + APP
    )
    with working(unstuck):
        runs(unstuck)
        eventually(lambda: shown(unstuck).get("mode") == "fork", timeout=15)


@only_sqlite
def test_a_worker_imports_its_app_once_and_passes_on_what_that_prints(unstuck: Command) -> None:
    """The process that is asked for the app's own settings is the one that forks its executors; a flood that it
    prints meanwhile keeps nobody waiting."""
    mine, imports = unstuck.directory / "mine.py", unstuck.directory / "imports"
    record = (
        f"import os\nopen({str(imports)!r}, 'a').write(f'{{os.getpid()}}\\n')\nprint('mine is here', flush=True)\n"
    )
    flood = "os.write(1, b'flood' * 100_000)\n"
    mine.write_text(record + flood + APP)
    with working(unstuck) as log:
        eventually(lambda: shown(unstuck).get("workflows") == ["add"], timeout=30)
        eventually(lambda: '"text": "mine is here"' in log.read_text(), timeout=10)
        with_its_worker = imports.read_text().split()
    assert len(with_its_worker) == 1


@only_sqlite
def test_an_app_finds_the_database_of_its_worker_while_it_is_imported(unstuck: Command) -> None:
    """Named by a flag, in the environment of a process that was started before all settings were known."""
    found = unstuck.directory / "found"
    (unstuck.directory / "mine.py").write_text(
        f"import os\nopen({str(found)!r}, 'a').write(os.environ.get('UNSTUCK_DATABASE', 'none') + '\\n')\n{APP}"
    )
    with working(unstuck, "--database", "sqlite:///elsewhere.db", UNSTUCK_DATABASE="sqlite:///other.db"):
        eventually(lambda: found.exists() and found.read_text(), timeout=30)
        eventually(lambda: unstuck("workers", "--json", "--database", "sqlite:///elsewhere.db").lines, timeout=15)
    assert found.read_text().split() == ["sqlite:///elsewhere.db"]
