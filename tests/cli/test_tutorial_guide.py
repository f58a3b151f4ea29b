"""docs/tutorial.md works as written, on both databases."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.command import ROOT, Command
from tests.cli.test_order_guide import run, shell_of
from tests.support.eventually import eventually

GUIDE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh)\n(.*?)```", GUIDE, re.S)
SHELL = [text for language, text in BLOCKS if language == "sh"]
CODE = {text.split()[1]: text for language, text in BLOCKS if language == "python"}


@pytest.fixture
def worker(unstuck: Command) -> Iterator[Command]:
    """The tutorial's own app, and a worker of it."""
    for name in ("shop.py", "ask.py"):
        (unstuck.directory / name).write_text(CODE[name])
    process = subprocess.Popen(
        unstuck.words("worker", "shop:app", "--processes", "1", "--drain", "5s"),
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: "deliver" in unstuck("workflows").out, timeout=30, every=0.2)
        yield unstuck
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.timeout(600)
def test_the_tutorial_works_as_written(worker: Command) -> None:
    install, start, first, ask, refund, decide, fails, skip, bulk, look, test = SHELL
    assert "pip install" in install
    assert test == "pip install pytest && python -m pytest -q\n"
    assert start == "unstuck worker shop:app\n"
    assert '"Hello, world!"' in run(worker, first)
    told = run(worker, ask)
    assert "Hello, Ada!" in told
    assert "receipt-7-4200" in told
    assert "name" in told
    run(worker, refund.replace("unstuck approvals\n", ""))
    eventually(lambda: "Refund order 7" in worker("approvals").out, timeout=30)
    assert "approved by kim" in run(worker, decide)
    told = run(worker, fails + skip)  # one shell, as the reader's is
    assert "target grace is blocked by FAILED job" in told
    assert '"grace has the lamp"' in told
    told = run(worker, bulk)
    assert told.startswith("1 job\nbulk 1 is started")
    assert "jobs.skip" in run(worker, look)


@pytest.mark.timeout(600)
def test_its_tests_pass_and_its_web_page_compiles(unstuck: Command) -> None:
    for name in ("shop.py", "conftest.py", "test_shop.py"):
        (unstuck.directory / name).write_text(CODE[name])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
    compile(CODE["web.py"], "web.py", "exec")
